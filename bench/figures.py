"""One line a figure, with its target beside it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One measured number; ``most`` is the target, None where there is only something to know."""

    name: str
    value: float
    unit: str
    most: float | None = None

    @property
    def missed(self) -> bool:
        """Whether the target is passed."""
        return self.most is not None and self.value > self.most

    def __str__(self) -> str:
        line = f"{self.name:62} {self.value:8.3f} {self.unit:6}"
        if self.most is None:
            return line
        return f"{line} at most {self.most:g} {self.unit:6} {'MISSED' if self.missed else 'ok'}"
