"""Kubernetes quantities (``500m``, ``1.5Gi``, ``1e3``): exact values, printed as the API does.

Source: Kubernetes documentation, "Quantity" (API reference, common definitions). A quantity
remembers whether it was written in powers of 1,000, of 1,024 or with an exponent, and sums keep
the notation of their first part that is not zero.
"""

import math
import re
from enum import StrEnum
from fractions import Fraction
from typing import Self

import msgspec

from vcjob.api.errors import VcjobError

_TEXT = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<decimals>[0-9]*))?"
    r"(?P<suffix>[numkMGTPE]|[KMGTPE]i|[eE](?P<exponent>[+-]?[0-9]{1,4}))?",
    re.ASCII,
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_LARGEST = 2**63 - 1
_NANO = 10**9
_LONGEST_TEXT = 100


class InvalidQuantity(VcjobError):
    """A value that is no Kubernetes quantity."""


class Notation(StrEnum):
    """How a quantity is written: ``1500k``, ``1500Ki``, ``15e5``."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


class Quantity(msgspec.Struct, frozen=True):
    """An exact amount and the notation it is written in."""

    value: Fraction = Fraction(0)
    notation: Notation = Notation.DECIMAL

    @classmethod
    def of(cls, text: str | int | float) -> Self:
        """Read a quantity as manifests give it: a text or a number.

        Fractions finer than a billionth are rounded up, amounts beyond 2^63-1 are cut, as the
        API server does. Raises InvalidQuantity.
        """
        shown = str(text)
        match = _TEXT.fullmatch(shown) if len(shown) <= _LONGEST_TEXT else None
        if isinstance(text, bool) or not match or not (match["whole"] or match["decimals"]):
            raise InvalidQuantity(
                f"{shown[:_LONGEST_TEXT]!r} is not a quantity such as 2, 500m, 1.5Gi or 1e3"
            )
        value = Fraction(f"{match['whole'] or 0}.{match['decimals'] or 0}")
        suffix, notation = match["suffix"] or "", Notation.DECIMAL
        if suffix in _DECIMAL:
            value *= _power_of_ten(_DECIMAL[suffix])
        elif suffix in _BINARY:
            value *= 1024 ** _BINARY.index(suffix)
            notation = Notation.BINARY
        else:
            value *= _power_of_ten(int(match["exponent"]))
            notation = Notation.EXPONENT
        value = min(Fraction(math.ceil(value * _NANO), _NANO), Fraction(_LARGEST))
        return cls(-value if match["sign"] == "-" else value, notation)

    def __add__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.value + other.value, self.notation if self.value else other.notation)

    def __mul__(self, count: int) -> "Quantity":
        return Quantity(self.value * count, self.notation)

    def __str__(self) -> str:
        """The canonical text: no fraction, and the largest suffix that leaves a whole number."""
        return format_quantity(self.value, self.notation)


def parse_quantity(text: str | int | float) -> Fraction:
    """The amount that a quantity stands for; raises InvalidQuantity."""
    return Quantity.of(text).value


def format_quantity(value: Fraction | int, notation: Notation = Notation.DECIMAL) -> str:
    """Write an amount as the Kubernetes API writes it: ``1536Mi``, ``4500m``, ``15e3``, ``0``.

    Amounts that powers of 1,024 cannot show exactly, or that are below 1,024, are written in
    powers of 1,000. Finer amounts than a billionth are rounded up.
    """
    nanos = math.ceil(abs(Fraction(value)) * _NANO)
    if not nanos:
        return "0"
    sign = "-" if value < 0 else ""
    whole, rest = divmod(nanos, _NANO)
    if notation is Notation.BINARY and not rest and whole >= 1024:
        power = 0
        while whole % 1024 == 0 and power < len(_BINARY) - 1:
            whole //= 1024
            power += 1
        return f"{sign}{whole}{_BINARY[power]}"
    exponent = -9
    while nanos % 1000 == 0 and exponent < max(_DECIMAL.values()):
        nanos //= 1000
        exponent += 3
    if notation is Notation.EXPONENT:
        return f"{sign}{nanos}e{exponent}" if exponent else f"{sign}{nanos}"
    return f"{sign}{nanos}{_DECIMAL_SUFFIX[exponent]}"


def _power_of_ten(exponent: int) -> Fraction:
    return Fraction(10**exponent) if exponent >= 0 else Fraction(1, 10**-exponent)
