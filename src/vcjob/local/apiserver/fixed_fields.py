"""What of an object cannot change once it is there.

Source: Kubernetes API reference of each kind ("immutable"; "Pod update").
"""

from fractions import Fraction
from typing import Any

from vcjob.api.kinds import (
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    ENDPOINT_SLICE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    PRIORITY_CLASS,
    SECRET,
    Kind,
)
from vcjob.api.problems import Problem
from vcjob.api.quantity import InvalidQuantity, parse_quantity
from vcjob.api.types import Object

_FIXED: dict[Kind, tuple[tuple[str, ...], ...]] = {
    SECRET: (("type",),),
    PRIORITY_CLASS: (("value",), ("preemptionPolicy",)),
    CUSTOM_RESOURCE_DEFINITION: (("spec", "group"), ("spec", "scope"), ("spec", "names", "kind")),
    ENDPOINT_SLICE: (("addressType",),),
}
_POD_MAY_CHANGE = ("activeDeadlineSeconds", "tolerations", "schedulingGates", "nodeName")
_CLAIM_MAY_CHANGE = ("resources", "volumeAttributesClassName", "volumeName")


def changed_fixed(kind: Kind, old: Object, new: Object) -> list[Problem]:
    """What differs between a stored object and what it is to become, and may not."""
    if kind in (CONFIG_MAP, SECRET) and old.get("immutable") is True:
        parts = ("data", "binaryData", "immutable")
        return [
            Problem("field is immutable when `immutable` is set", (part,))
            for part in parts
            if old.get(part) != new.get(part)
        ]
    if kind in (POD, PERSISTENT_VOLUME_CLAIM):
        before, after = old.get("spec") or {}, new.get("spec") or {}
        if not isinstance(after, dict):
            return []  # which the checks of fields tell
        return _changed_pod(before, after) if kind == POD else _changed_claim(before, after)
    return [
        Problem("field is immutable", path)
        for path in _FIXED.get(kind, ())
        if _part(old, path) != _part(new, path)
    ]


def _changed_pod(old: Object, new: Object) -> list[Problem]:
    before, after = _fixed_of_pod(old), _fixed_of_pod(new)
    problems = [
        Problem("pod updates may not change fields other than images", ("spec", key))
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    ]
    if old.get("nodeName") and new.get("nodeName") != old["nodeName"]:
        problems.append(Problem("a pod stays on its node", ("spec", "nodeName")))
    if not _holds_all(new.get("tolerations"), old.get("tolerations")):
        told = "tolerations can be added, and none changed or removed"
        problems.append(Problem(told, ("spec", "tolerations")))
    if not _holds_all(old.get("schedulingGates"), new.get("schedulingGates")):
        told = "scheduling gates can be removed, and none added"
        problems.append(Problem(told, ("spec", "schedulingGates")))
    problems += _changed_deadline(old.get("activeDeadlineSeconds"), new)
    return problems


def _changed_deadline(old: object, new: Object) -> list[Problem]:
    deadline = new.get("activeDeadlineSeconds")
    if isinstance(old, int) and not (isinstance(deadline, int) and deadline <= old):
        told = "activeDeadlineSeconds can be set once and then only become less"
        return [Problem(told, ("spec", "activeDeadlineSeconds"))]
    return []


def _holds_all(whole: Any, part: Any) -> bool:
    """Whether every item of ``part`` is in ``whole``; what is no list is told by other checks."""
    whole, part = whole or [], part or []
    if not isinstance(whole, list) or not isinstance(part, list):
        return True
    return all(item in whole for item in part)


def _fixed_of_pod(spec: Object) -> Object:
    fixed = {key: value for key, value in spec.items() if key not in _POD_MAY_CHANGE}
    for field in ("containers", "initContainers"):
        if isinstance(items := fixed.get(field), list):
            fixed[field] = [
                {key: value for key, value in one.items() if key != "image"}
                if isinstance(one, dict) else one
                for one in items
            ]  # fmt: skip
    return fixed


def _changed_claim(old: Object, new: Object) -> list[Problem]:
    problems = [
        Problem("only the requested storage of a claim may change", ("spec", key))
        for key in {**old, **new}
        if key not in _CLAIM_MAY_CHANGE and old.get(key) != new.get(key)
    ]
    if old.get("volumeName") and new.get("volumeName") != old["volumeName"]:
        problems.append(Problem("a claim keeps its volume", ("spec", "volumeName")))
    path = ("resources", "requests", "storage")
    before, after = _amount(_part(old, path)), _amount(_part(new, path))
    if before is not None and after is not None and after < before:
        problems.append(Problem("a claim cannot become smaller", ("spec", *path)))
    return problems


def _amount(value: object) -> Fraction | None:
    if not isinstance(value, str | int | float):
        return None
    try:
        return parse_quantity(value)
    except InvalidQuantity:
        return None


def _part(obj: Object, path: tuple[str, ...]) -> object:
    value: object = obj
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
