"""Requests and limits of a container.

Source: Kubernetes documentation, "Resource Management for Pods and Containers" and "Extended
resources".
"""

from collections.abc import Iterator
from fractions import Fraction

from vcjob.api.problems import Path, Problem
from vcjob.api.quantity import parse_quantity
from vcjob.api.suggestions import suggest
from vcjob.api.types import Object

_STANDARD = ("cpu", "memory", "ephemeral-storage")


def check_resources(resources: Object, path: Path, claims: set[str]) -> Iterator[Problem]:
    """Known names, requests within limits, whole numbers of devices, claims that the pod has."""
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for group in ("limits", "requests"):
        for name, amount in resources.get(group, {}).items():
            yield from _check_name(name, amount, (*path, group, name))
    for name, requested in requests.items():
        limit = limits.get(name)
        where = (*path, "requests", name)
        if limit is not None and _amount(requested) > _amount(limit):
            yield Problem(
                f"the request of {requested} {name} is over the limit of {limit}",
                where,
                "lower the request or raise the limit",
            )
        elif _is_device(name) and (limit is None or _amount(requested) != _amount(limit)):
            yield Problem(
                f"{name} cannot be overcommitted: its limit must be the same as its request",
                where,
                f"set limits to {name}: {requested} too",
            )
    for index, claim in enumerate(resources.get("claims", [])):
        name = claim.get("name")
        if name and name not in claims:
            hint = suggest(name, claims) or "add it to resourceClaims of the pod"
            yield Problem(
                f'the pod has no resource claim "{name}"', (*path, "claims", index, "name"), hint
            )


def _check_name(name: str, amount: object, path: Path) -> Iterator[Problem]:
    if "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
        yield Problem(
            f'there is no resource "{name}"',
            path,
            suggest(name, _STANDARD) + "; devices are written with their domain: example.com/gpu",
        )
    elif _is_device(name) and _amount(amount).denominator != 1:
        yield Problem(f"{name} comes in whole numbers, not {amount}", path)


def _is_device(name: str) -> bool:
    """Whether it cannot be overcommitted: an extended resource or huge pages."""
    domain, slash, _ = name.rpartition("/")
    native = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    return (bool(slash) and not native) or name.startswith("hugepages-")


def _amount(quantity: object) -> Fraction:
    return Fraction(parse_quantity(str(quantity)))
