"""Sets of pod indices, kept as the bits of one number: small, and cheap to combine."""

import re
from collections.abc import Iterator
from typing import Self

import msgspec

_RUN = re.compile("1+")
LARGEST_INDEX = 10_000_000
"""Larger ones are in no Job that can run; a text that has one would cost a lot of memory."""


class IndexSet(msgspec.Struct, frozen=True):
    """An immutable set of indices. As text it is ranges: ``0-3,7``."""

    bits: int = 0

    @classmethod
    def of(cls, *indices: int) -> Self:
        """The set of these indices."""
        bits = 0
        for index in indices:
            bits |= 1 << index
        return cls(bits)

    @classmethod
    def below(cls, count: int) -> Self:
        """All indices below ``count``."""
        return cls((1 << count) - 1)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The set that ``str()`` wrote; raises ValueError for any other text."""
        bits = 0
        for part in text.split(",") if text else ():
            first, _, last = part.partition("-")
            start, end = int(first), int(last or first)
            if not 0 <= start <= end <= LARGEST_INDEX:
                raise ValueError(f"there is no range of indices {part[:40]}")
            bits |= ((1 << (end - start + 1)) - 1) << start
        return cls(bits)

    @property
    def first(self) -> int:
        """The lowest index; -1 of an empty set."""
        return (self.bits & -self.bits).bit_length() - 1

    def __str__(self) -> str:
        runs = ((run.start(), run.end() - 1) for run in _RUN.finditer(f"{self.bits:b}"[::-1]))
        return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)

    def __iter__(self) -> Iterator[int]:
        for run in _RUN.finditer(f"{self.bits:b}"[::-1]):
            yield from range(run.start(), run.end())

    def __contains__(self, index: int) -> bool:
        return bool(self.bits >> index & 1)

    def __len__(self) -> int:
        return self.bits.bit_count()

    def __bool__(self) -> bool:
        return bool(self.bits)

    def __or__(self, other: "IndexSet") -> "IndexSet":
        return IndexSet(self.bits | other.bits)

    def __and__(self, other: "IndexSet") -> "IndexSet":
        return IndexSet(self.bits & other.bits)

    def __sub__(self, other: "IndexSet") -> "IndexSet":
        return IndexSet(self.bits & ~other.bits)


NO_INDICES = IndexSet()
