"""Objects of a Job as an API server has them, made comparable with recorded ones."""

import base64
import copy
import json
from collections.abc import Callable
from typing import Any

from rendered import GROUPS, REGISTRY, DerivedNames, as_recorded, without_script

from end_to_end.playing import PLAYED
from end_to_end.world import World
from vcjob.api.kinds import ALL
from vcjob.api.types import Job, Object
from vcjob.core.blueprint import Blueprint
from vcjob.plugins.base import KeyPair

_OF_SERVERS = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")
_TOKENS = "kube-api-access-"
_NO_KEYS = KeyPair("no key", "no key")


def stored_objects(world: World, job: Object) -> dict[tuple[str, str], Object]:
    """The objects that a Job owns, by kind and name, in the shape of recordings."""
    kinds = {kind.kind: kind for kind in ALL}
    uid = job["metadata"]["uid"]
    owned = [obj for kind in GROUPS for obj in world.all(kinds[kind]) if _is_owned(obj, uid)]
    pairs = _key_pairs(owned)
    names = DerivedNames(Blueprint(Job.of(job), REGISTRY, pairs))
    found = {}
    for one in owned:
        text = json.dumps(without_server(one))
        obj = names.replace(
            json.loads(text.replace(uid, "<uid>").replace(world.namespace, "default"))
        )
        obj = as_recorded(without_script(obj), pairs)
        found[obj["kind"], obj["metadata"]["name"]] = obj
    return found


def without_server(obj: Object) -> Object:
    """An object without what servers and the suite add to every one, and without its status."""
    plain = {key: copy.deepcopy(value) for key, value in obj.items() if key != "status"}
    for field in _OF_SERVERS:
        plain["metadata"].pop(field, None)
    if obj["kind"] == "Service":
        plain["spec"].pop("ipFamilies", None)  # the cluster's
    if obj["kind"] == "Pod":
        spec = plain["spec"]
        spec.pop("nodeName", None)  # where a scheduler was at work before we looked
        _leave_out(spec, "volumes", lambda one: one["name"].startswith(_TOKENS))
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            _leave_out(container, "volumeMounts", lambda one: one["name"].startswith(_TOKENS))
        _leave_out(spec, "tolerations", lambda one: one.get("key") == PLAYED)
        if spec.get("nodeSelector", {}).pop(PLAYED, "") and not spec["nodeSelector"]:
            del spec["nodeSelector"]
    return plain


def _is_owned(obj: Object, uid: str) -> bool:
    return any(one["uid"] == uid for one in obj["metadata"].get("ownerReferences") or ())


def _leave_out(holder: dict[str, Any], field: str, unwanted: Callable[[Any], bool]) -> None:
    if field in holder:
        holder[field] = [one for one in holder[field] if not unwanted(one)]
        if not holder[field]:
            del holder[field]


def _key_pairs(objects: list[Object]) -> dict[str, KeyPair]:
    """The pairs that were made for the plugin ssh."""
    for obj in objects:
        if obj["kind"] == "Secret" and "id_ed25519" in obj["data"]:
            data = {key: base64.b64decode(text).decode() for key, text in obj["data"].items()}
            return {
                f"ssh-{algorithm}": KeyPair(data[f"id_{algorithm}"], data[f"id_{algorithm}.pub"])
                for algorithm in ("rsa", "ed25519")
            }
    return {"ssh-rsa": _NO_KEYS, "ssh-ed25519": _NO_KEYS}
