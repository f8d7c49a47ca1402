"""Amounts of resources: what is left, what is missing, and how to say it."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType

from vcjob.api.quantity import Notation, format_quantity

Amounts = Mapping[str, Fraction]
"""Amounts of resources by name, such as ``cpu``, ``memory``, ``nvidia.com/gpu``."""

NOTHING: Amounts = MappingProxyType({})

# A machine without extended resources has none of them; of these it has no figure.
_NOT_COUNTED = ("ephemeral-storage", "hugepages-")
_BINARY = ("memory", "ephemeral-storage")
_BINARY_PREFIX = "hugepages-"


def beyond(needs: Amounts, limit: Amounts, missing_is_none: bool = True) -> list[str]:
    """Resources of which more is needed than ``limit`` has.

    Of a resource that is not in ``limit`` there is none if ``missing_is_none``, else any amount.
    """
    return [
        name
        for name, amount in sorted(needs.items())
        if amount > 0
        and (name in limit or (missing_is_none and not name.startswith(_NOT_COUNTED)))
        and amount > limit.get(name, 0)
    ]


def less(amounts: Amounts, taken: Amounts) -> dict[str, Fraction]:
    """``amounts`` without what is taken of them; never below zero."""
    return {name: max(amount - taken.get(name, 0), Fraction(0)) for name, amount in amounts.items()}


def add(total: dict[str, Fraction], amounts: Amounts, times: int = 1) -> None:
    """Add ``times`` times ``amounts`` to ``total``."""
    for name, amount in amounts.items():
        total[name] = total.get(name, Fraction(0)) + amount * times


def listed(amounts: Amounts, resources: Sequence[str]) -> str:
    """Some of the amounts, to be read by people: ``cpu 500m, memory 3Gi``."""
    return ", ".join(f"{name} {_shown(name, amounts.get(name, Fraction(0)))}" for name in resources)


def _shown(name: str, amount: Fraction) -> str:
    binary = name in _BINARY or name.startswith(_BINARY_PREFIX)
    return format_quantity(amount, Notation.BINARY if binary else Notation.DECIMAL)
