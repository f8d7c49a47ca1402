"""What Kubernetes' own kinds must obey beyond the types, bounds and choices of single fields.

What would be refused on a cluster is refused here too, so that a manifest that works on this
machine works there. Source: Kubernetes API reference of each kind, and what its validation asks.
"""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from vcjob.api.kinds import (
    CONFIG_MAP,
    ENDPOINT_SLICE,
    EVENT,
    NETWORK_POLICY,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    PRIORITY_CLASS,
    SECRET,
    SERVICE,
    Kind,
)
from vcjob.api.problems import Path, Problem
from vcjob.api.quantity import parse_quantity
from vcjob.api.schema.readable import readable_part
from vcjob.api.types import Object
from vcjob.core.checks.contents import check_contents
from vcjob.core.checks.templates import check_pod_spec
from vcjob.core.scheduling.priorities import BUILT_IN
from vcjob.local.apiserver.network_rules import endpoint_slice, network_policy, service
from vcjob.local.apiserver.schemas.kinds import OF_KINDS

_encode = msgspec.json.Encoder().encode
_HIGHEST_PRIORITY = 1_000_000_000
_SYSTEM = "system-"
# What a Secret of a type must hold: all of the keys, or at least one of them.
_ALL_KEYS: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_ONE_KEY: Mapping[str, tuple[str, ...]] = {"kubernetes.io/basic-auth": ("username", "password")}


def rule_problems(kind: Kind, obj: Object) -> Iterator[Problem]:
    """What is wrong with an object of a built-in kind whose fields have the right types."""
    if rule := _RULES.get(kind):
        # Nulls are rare, and to look for them costs a tenth of a copy without them.
        is_readable = b"null" not in _encode(obj)
        yield from rule(obj if is_readable else readable_part(obj, OF_KINDS[kind]))


def _pod(pod: Object) -> Iterator[Problem]:
    for problem in check_pod_spec(pod.get("spec", {}), ("spec",)):
        if not problem.warning:
            yield problem


def _claim(claim: Object) -> Iterator[Problem]:
    spec = claim.get("spec", {})
    if not spec.get("accessModes"):
        yield Problem("at least 1 access mode is required", ("spec", "accessModes"))
    path: Path = ("spec", "resources", "requests", "storage")
    storage = spec.get("resources", {}).get("requests", {}).get("storage")
    if storage is None:
        yield Problem("the amount of storage is required", path)
    elif parse_quantity(storage) <= 0:
        yield Problem("the amount of storage must be greater than zero", path)


def _priority_class(priority_class: Object) -> Iterator[Problem]:
    name, value = priority_class["metadata"].get("name", ""), priority_class.get("value", 0)
    if name in BUILT_IN:
        return
    if name.startswith(_SYSTEM):
        told = f"names that start with {_SYSTEM} are those of the system's own classes"
        yield Problem(told, ("metadata", "name"))
    if value > _HIGHEST_PRIORITY:
        yield Problem(f"value must be at most {_HIGHEST_PRIORITY:,}", ("value",))


def _secret(secret: Object) -> Iterator[Problem]:
    yield from check_contents(secret, SECRET)
    given, of_type = secret.get("data", {}), secret.get("type", "")
    for key in _ALL_KEYS.get(of_type, ()):
        if key not in given:
            yield Problem(f'a Secret of the type {of_type} needs the key "{key}"', ("data", key))
    keys = _ONE_KEY.get(of_type, ())
    if keys and not any(key in given for key in keys):
        told = f"a Secret of the type {of_type} needs one of the keys {', '.join(keys)}"
        yield Problem(told, ("data",))


def _config_map(config_map: Object) -> Iterator[Problem]:
    yield from check_contents(config_map, CONFIG_MAP)


def _event(event: Object) -> Iterator[Problem]:
    namespace = event["metadata"].get("namespace", "")
    about = event.get("involvedObject", {}).get("namespace", "")
    if about != namespace and (about or namespace != "default"):
        told = f"an Event stands in the namespace of what it is about, not in {namespace!r}"
        yield Problem(told, ("involvedObject", "namespace"))


_RULES: Mapping[Kind, Callable[[Object], Iterator[Problem]]] = {
    POD: _pod,
    SERVICE: service,
    ENDPOINT_SLICE: endpoint_slice,
    NETWORK_POLICY: network_policy,
    PERSISTENT_VOLUME_CLAIM: _claim,
    PRIORITY_CLASS: _priority_class,
    SECRET: _secret,
    CONFIG_MAP: _config_map,
    EVENT: _event,
}
