"""What a pod asks of a node, as far as it decides where the pod fits.

Amounts are whole billionths here, the finest that quantities have: exact like fractions, and an
order of magnitude cheaper where a thousand nodes are compared. Source: Kubernetes documentation,
"Assigning Pods to Nodes", "Taints and Tolerations", "Resource Management for Pods".
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import msgspec

from vcjob.api.quantity import InvalidQuantity, parse_quantity
from vcjob.api.types import Object
from vcjob.core.usage import pod_usage

BILLION = 10**9
PODS = "pods"
"""The resource of which each pod takes one: a node's room for pods, whatever they request."""

_REMEMBERED = 10_000
_encode = msgspec.json.Encoder(order="deterministic").encode


class Requirement(msgspec.Struct, frozen=True):
    """One expression on a node's labels (or, for ``matchFields``, its fields)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class Term(msgspec.Struct, frozen=True):
    """Requirements that a node has to fulfil all; of several terms one is enough."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


class Toleration(msgspec.Struct, frozen=True):
    """Taints that a pod puts up with; an empty key or effect stands for any."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class Demands(msgspec.Struct, frozen=True):
    """What kind of node a pod asks for. ``terms`` is None where it has no node affinity."""

    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[Term, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()


class PodShape(msgspec.Struct, frozen=True):
    """Pods of one shape can take each other's places.

    ``requests`` are in billionths, by name, without zeros.
    """

    requests: tuple[tuple[str, int], ...] = ((PODS, BILLION),)
    demands: Demands = Demands()

    def shown(self) -> dict[str, Fraction]:
        """The requests without the pod itself, as amounts."""
        return {name: Fraction(amount, BILLION) for name, amount in self.requests if name != PODS}


def pod_shape(spec: Object) -> PodShape:
    """The shape of a pod, from its spec; what cannot be read counts for nothing."""
    requests = {
        field: spec[field]
        for field in ("resources", "overhead")
        if spec.get(field)
    }  # fmt: skip
    containers = [_asks(one) for one in spec.get("containers") or ()]
    inits = [_asks(one) for one in spec.get("initContainers") or ()]
    requests.update(containers=containers, initContainers=inits)
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    demands = (spec.get("nodeSelector"), affinity, spec.get("tolerations"))
    return _shape(_encode(requests), _encode(demands) if any(demands) else b"")


def resource_amounts(resources: Mapping[str, Any] | None) -> dict[str, int]:
    """A resource list in billionths; one that is no quantity counts for nothing."""
    amounts: dict[str, int] = {}
    for name, text in (resources or {}).items():
        try:
            amounts[name] = billionths(parse_quantity(text))
        except InvalidQuantity:
            continue  # an API server refuses it
    return amounts


def billionths(amount: Fraction) -> int:
    """An amount as a number of billionths; quantities are never finer."""
    return int(amount * BILLION)


def _asks(container: Object) -> Object:
    """What a container requests. What has only a limit requests that, as API servers see to."""
    resources = container.get("resources") or {}
    asks: Object = {}
    if requests := {**(resources.get("limits") or {}), **(resources.get("requests") or {})}:
        asks["resources"] = {"requests": requests}
    if container.get("restartPolicy"):
        asks["restartPolicy"] = container["restartPolicy"]
    return asks


@lru_cache(maxsize=_REMEMBERED)
def _shape(requests: bytes, demands: bytes) -> PodShape:
    """Read once what thousands of pods have in common: nearly all are made from templates."""
    return PodShape(_requests(msgspec.json.decode(requests)), _demands(demands))


def _requests(spec: Object) -> tuple[tuple[str, int], ...]:
    try:
        usage = pod_usage(spec)
    except InvalidQuantity:
        usage = {}
    amounts = {
        name: billionths(quantity.value)
        for name, quantity in usage.items()
        if not name.startswith(("requests.", "limits.", "count/"))
    }
    amounts[PODS] = BILLION
    return tuple(sorted((name, amount) for name, amount in amounts.items() if amount > 0))


def _demands(encoded: bytes) -> Demands:
    if not encoded:
        return Demands()
    selector, affinity, tolerations = msgspec.json.decode(encoded)
    terms = (affinity or {}).get("nodeSelectorTerms")
    return Demands(
        tuple(sorted((selector or {}).items())),
        None if affinity is None else tuple(_term(one) for one in terms or ()),
        tuple(_toleration(one) for one in tolerations or ()),
    )


def _term(term: Object) -> Term:
    return Term(
        _requirements(term.get("matchExpressions") or ()),
        _requirements(term.get("matchFields") or ()),
    )


def _requirements(expressions: Iterable[Object]) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(one.get("key", ""), one.get("operator", ""), tuple(one.get("values") or ()))
        for one in expressions
    )


def _toleration(one: Object) -> Toleration:
    return Toleration(
        one.get("key") or "",
        one.get("operator") or "Equal",
        one.get("value") or "",
        one.get("effect") or "",
    )
