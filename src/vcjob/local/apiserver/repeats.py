"""What a pod may name twice, though lists of it are merged by that name.

Definitions of custom kinds refuse such lists, so that a Job's template may not have them; of pods
Kubernetes' server takes them, and the last counts. Plugins add variables to containers that have
them already. Source: Kubernetes API reference, "Container" (env: the last takes precedence).
"""

from collections.abc import Mapping
from typing import Any

from vcjob.api.types import Object

_OF_PODS = {"imagePullSecrets": ("name",), "hostAliases": ("ip",)}
_OF_CONTAINERS = {"env": ("name",), "ports": ("containerPort", "protocol")}
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def without_repeats(pod: Object) -> Object:
    """The pod with only the last of what it names twice, to be checked for everything else."""
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return pod
    spec = _last_ones(spec, _OF_PODS)
    for field in _CONTAINERS:
        if isinstance(containers := spec.get(field), list):
            spec[field] = [
                _last_ones(one, _OF_CONTAINERS) if isinstance(one, dict) else one
                for one in containers
            ]
    return {**pod, "spec": spec}


def _last_ones(holder: Object, keys: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    changed = dict(holder)
    for field, names in keys.items():
        if isinstance(items := changed.get(field), list):
            last = {_identity(item, names, place): item for place, item in enumerate(items)}
            changed[field] = list(last.values())
    return changed


def _identity(item: Any, names: tuple[str, ...], place: int) -> str:
    if not isinstance(item, dict) or not item.get(names[0]):
        return f"place {place}"  # what is wrong with it is told elsewhere
    return repr([item.get(name) for name in names])
