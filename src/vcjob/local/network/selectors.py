"""Label selectors as Kubernetes defines them (LabelSelector in meta/v1)."""

from collections.abc import Mapping
from typing import Any

import msgspec

from vcjob.api.types import Object


class Requirement(msgspec.Struct, frozen=True):
    """One condition on a label. ``operator``: In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels fulfil it; an absent label is NotIn anything."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return self.key not in labels or labels[self.key] not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
            case _:  # the API refuses it; matching nothing is the safe side
                return False


class Selector(msgspec.Struct, frozen=True):
    """All requirements together; none at all select everything."""

    requirements: frozenset[Requirement] = frozenset()

    @classmethod
    def of(cls, selector: Object) -> "Selector":
        """Read a LabelSelector (matchLabels, matchExpressions)."""
        equal = selector.get("matchLabels") or {}
        expressions: list[dict[str, Any]] = selector.get("matchExpressions") or []
        return cls(
            frozenset(Requirement(key, "In", frozenset((value,))) for key, value in equal.items())
            | frozenset(
                Requirement(one["key"], one["operator"], frozenset(one.get("values") or ()))
                for one in expressions
            )
        )

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels fulfil all requirements."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def keys(self) -> frozenset[str]:
        """The labels that it asks for."""
        return frozenset(requirement.key for requirement in self.requirements)
