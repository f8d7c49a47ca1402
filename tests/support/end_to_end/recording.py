"""What is seen of a Job, written so that the files of two controllers can be compared by diff.

What differs from one run to the next is replaced: identities, versions, times, addresses. Lists
keep their order.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from end_to_end.mirror import WATCHED
from end_to_end.world import World
from vcjob.api.kinds import EVENT, JOB, POD
from vcjob.api.names import STATE_KEY
from vcjob.api.types import Object

_DROPPED = frozenset({"uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"})
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_DURATION = re.compile(r"(\d+(\.\d+)?(h|m|s|ms))+")
_GENERATED = re.compile(r"(Command \S+?-)[0-9a-z]{5}\b")


def phases(world: World) -> list[str]:
    """The phases of the Jobs, one after the other."""
    found: list[str] = []
    for phase in map(phase_of, world.written):
        if phase and found[-1:] != [phase]:
            found.append(phase)
    return found


def phase_of(job: Object) -> str:
    """A Job's phase, empty before it has one."""
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "")


def said(event: Object) -> str:
    """What an Event says, without what was generated."""
    message = _GENERATED.sub(r"\1<random>", event["message"])
    if event["reason"] == "FailedCreate":
        # Volcano tells pointers, and pods in any order; servers count in words of their own.
        message = re.sub(r"(Error creating pods: )\[.*", r"\1...", message)
        message = re.sub(r"(cannot be created: ).*(exceeded quota: \w+).*", r"\1\2", message)
    message = message.replace(f"{event['metadata']['namespace']}:", "<namespace>:")
    return f"{event['type']} {event['reason']}: {message.strip()}"


def seen(world: World) -> Object:
    """Phases, Events and objects as they are now."""
    names = {job["metadata"]["uid"]: "<uid>" for job in world.all(JOB)}
    names[world.namespace] = "<namespace>"
    names |= _names_of_claims(world)
    return {
        "phases": phases(world),
        "events": sorted({said(event) for event in world.job_events()}),
        "objects": {
            kind.plural: sorted(
                (_shown(obj, names) for obj in world.all(kind)),
                key=lambda obj: str(obj["metadata"]["name"]),
            )
            for kind in WATCHED
            if kind != EVENT and world.all(kind)
        },
    }


def _names_of_claims(world: World) -> dict[str, str]:
    """Names that controllers make up, of claims and of volumes for them, in the Jobs' order."""
    names = {}
    for job in world.all(JOB):
        for number, volume in enumerate(job["spec"].get("volumes") or (), start=1):
            if volume.get("volumeClaim") and (claim := volume.get("volumeClaimName")):
                names[claim] = f"<claim {number}>"
    for pod in world.all(POD):
        volumes = pod["spec"].get("volumes") or ()
        of_claims = [one["name"] for one in volumes if "persistentVolumeClaim" in one]
        names |= {name: f"<volume {number}>" for number, name in enumerate(of_claims, start=1)}
    return names


def write(path: Path, content: Object) -> None:
    """Write a file of what was seen."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content, sort_keys=True, allow_unicode=True, width=100))


def _shown(obj: Object, names: dict[str, str]) -> Any:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _DROPPED}
    shown = {**obj, "metadata": metadata}
    if obj["kind"] == POD.kind:
        shown["status"] = {"phase": (obj.get("status") or {}).get("phase")}
    if obj["kind"] == "Secret":
        shown["data"] = sorted(obj.get("data") or ())
    if obj["kind"] == JOB.kind and (status := obj.get("status")):
        marks = status.get("controlledResources") or {}
        kept = {key: value for key, value in marks.items() if key != STATE_KEY}
        shown["status"] = {**status, "controlledResources": kept}
    return _without_chance(shown, names)


def _without_chance(value: Any, names: dict[str, str], key: str = "") -> Any:
    if isinstance(value, dict):
        return {
            _without_chance(name, names): _without_chance(item, names, name)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_without_chance(item, names, key) for item in value]
    if not isinstance(value, str):
        return value
    if key == "runningDuration" and _DURATION.fullmatch(value):
        return "<duration>"
    if key in ("clusterIP", "clusterIPs") and value != "None":
        return "<clusterIP>"
    for real, shown in names.items():
        value = value.replace(real, shown)
    return _TIME.sub("<time>", value)
