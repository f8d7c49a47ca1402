"""One line a figure, with its target beside it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One measured number.

    ``most`` or ``least`` is the target; neither where there is only something to know.
    """

    name: str
    value: float
    unit: str
    most: float | None = None
    least: float | None = None

    @property
    def missed(self) -> bool:
        """Whether the value is beyond its target."""
        too_much = self.most is not None and self.value > self.most
        return too_much or (self.least is not None and self.value < self.least)

    def __str__(self) -> str:
        line = f"{self.name:62} {self.value:8.3f} {self.unit:6}"
        word, target = ("at least", self.least) if self.most is None else ("at most", self.most)
        if target is None:
            return line
        return f"{line} {word} {target:g} {self.unit:6} {'MISSED' if self.missed else 'ok'}"
