"""Priorities of pods and of groups of pods, from their PriorityClasses.

Source: Kubernetes documentation, "Pod Priority and Preemption".
"""

from collections.abc import Collection, Mapping

from vcjob.api.types import Object

BUILT_IN = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Priorities of the classes that are there without an object."""


def priority_of(name: str | None, classes: Mapping[str, Object]) -> int:
    """The priority of the class called ``name``; 0 without one, or if there is no such class."""
    if not name:
        return 0
    found = classes.get(name)
    return int(found.get("value") or 0) if found else BUILT_IN.get(name, 0)


def with_priority(spec: Object, classes: Collection[Object]) -> Object:
    """The spec of a new pod with the priority of its class, or of the default class.

    ``spec`` itself if there is neither.
    """
    name = spec.get("priorityClassName")
    if name:
        chosen = [one for one in classes if one["metadata"]["name"] == name]
    else:
        defaults = [one for one in classes if one.get("globalDefault") is True]
        chosen = sorted(defaults, key=lambda one: int(one.get("value") or 0))[:1]
    if not chosen:
        return {**spec, "priority": BUILT_IN[name]} if name in BUILT_IN else spec
    [found] = chosen
    return {
        **spec,
        "priorityClassName": found["metadata"]["name"],
        "priority": int(found.get("value") or 0),
        "preemptionPolicy": found.get("preemptionPolicy") or "PreemptLowerPriority",
    }
