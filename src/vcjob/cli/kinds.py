"""The kinds that ``vcjob get`` and ``describe`` know, by every name that kubectl takes."""

from vcjob.api.kinds import ALL, Kind
from vcjob.api.suggestions import closest

_SHORT_NAMES = {
    "Job": ("vcjob", "vcjobs", "vj"),
    "PodGroup": ("pg",),
    "Queue": ("q",),
    "Command": ("cmd",),
    "Pod": ("po",),
    "Service": ("svc",),
    "ConfigMap": ("cm",),
    "PersistentVolumeClaim": ("pvc",),
    "Event": ("ev",),
    "Namespace": ("ns",),
    "Node": ("no",),
    "NetworkPolicy": ("netpol",),
    "PriorityClass": ("pc",),
}

_BY_NAME: dict[str, Kind] = {
    name: kind
    for kind in reversed(ALL)
    for name in (kind.kind.lower(), kind.plural, *_SHORT_NAMES.get(kind.kind, ()))
}


def kind_called(word: str) -> Kind | None:
    """The kind that a word such as ``pods``, ``po`` or ``jobs.batch.volcano.sh`` names."""
    name, _, group = word.lower().partition(".")
    kind = _BY_NAME.get(name)
    if kind is None or (group and not f"{kind.version}.{kind.group}".endswith(group)):
        return None
    return kind


def closest_kind(word: str) -> str:
    """The name of a kind most like ``word``, or an empty text."""
    return closest(word, _BY_NAME)
