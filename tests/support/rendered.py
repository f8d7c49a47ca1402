"""Objects of a Job beside those that genuine Volcano made of it, field by field.

Rule of comparison: each field that we send stands in the recording with the same value, lists
have the same length and order; what the recording has beyond that is only what an API server
fills in. Where plugins worked in random order, only their blocks may stand in another order.
"""

import base64
import copy
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from vcjob.api.types import Object
from vcjob.core.blueprint import Blueprint
from vcjob.plugins.base import KeyPair
from vcjob.plugins.registry import installed_plugins
from vcjob.plugins.ssh_config import PATTERNS_BEGIN

RENDERED = {
    path.stem: json.loads(path.read_text())
    for path in sorted((Path(__file__).parents[1] / "reference" / "render").glob("*.json"))
}
REGISTRY = installed_plugins(third_party=False)
PLUGINS_HERE = {*REGISTRY.names(), "nosuch"}
GROUPS = {
    "Pod": "pods",
    "Service": "services",
    "ConfigMap": "configmaps",
    "NetworkPolicy": "networkpolicies",
    "Secret": "secrets",
    "PodGroup": "podgroups",
    "PersistentVolumeClaim": "persistentvolumeclaims",
}

# What an API server fills in, by kind and path ("[]" is any position of a list).
CONTAINERS = r"spec\.(initC|c)ontainers\[\]\."
SERVER_FILLS = {
    kind: re.compile("|".join(paths))
    for kind, paths in {
        "Pod": (
            r"metadata\.generation",
            r"spec\.(dnsPolicy|restartPolicy|terminationGracePeriodSeconds|securityContext)",
            r"spec\.(tolerations|priority|preemptionPolicy|enableServiceLinks|schedulerName)",
            r"spec\.volumes\[\]\.configMap\.defaultMode",
            r"spec\.volumes\[\]\.secret\.defaultMode",
            r"spec\.volumes\[\]\.hostPath\.type",
            r"spec\.serviceAccount(Name)?",
            CONTAINERS + r"(terminationMessage(Path|Policy)|imagePullPolicy|resources)",
            CONTAINERS + r"resources\.requests(\..*)?",
            CONTAINERS + r"ports\[\]\.(protocol|hostPort)",
            CONTAINERS + r"\w+Probe\.httpGet\.scheme",
            CONTAINERS + r"env\[\]\.valueFrom\.fieldRef\.apiVersion",
            CONTAINERS + r"\w+Probe\.(timeoutSeconds|periodSeconds)",
            CONTAINERS + r"\w+Probe\.(success|failure)Threshold",
            r"status",
        ),
        "Service": (
            r"spec\.(clusterIPs|clusterIP|type|sessionAffinity)",
            r"spec\.(ipFamilies|ipFamilyPolicy|internalTrafficPolicy)",
            r"spec\.ports\[\]\.protocol",
            r"status",
        ),
        "ConfigMap": (),
        "NetworkPolicy": (r"metadata\.generation",),
        "Secret": (r"type", r"dataDecoded"),
        "PodGroup": (r"metadata\.generation", r"status"),
        "PersistentVolumeClaim": (r"metadata\.finalizers", r"spec\.volumeMode", r"status"),
    }.items()
}
# What controllers of a cluster, or its defaults, add beyond that.
CLUSTERS_FILL = {
    "PersistentVolumeClaim": re.compile(
        r"spec\.(storageClassName|volumeName)|metadata\.annotations(\..*)?"
    ),
}
# docs/compatibility.md row 11: what we send beyond the recording.
OURS = {"app.kubernetes.io/managed-by": "vcjob"}

# To which plugin's block an entry belongs; the template's own entries come first.
BLOCKS = (
    re.compile(r"V[KC]_TASK_INDEX"),
    re.compile(r"VC_\w*_(HOSTS|NUM)|.*-svc"),
    re.compile(r".*-ssh"),
    re.compile(r"TF_CONFIG"),
    re.compile(r"MASTER_(ADDR|PORT)|WORLD_SIZE|RANK|pytorchjob-port|wait-for-master"),
    re.compile(r"MPI_HOST|mpijob-port"),
)


def cases() -> list[str]:
    """The recordings whose plugins we have."""
    return [
        name
        for name, recording in RENDERED.items()
        if PLUGINS_HERE.issuperset(recording["job"]["spec"].get("plugins", ()))
    ]


def recorded_objects(name: str) -> dict[tuple[str, str], Object]:
    """What Volcano made in a recording, by kind and name."""
    return {
        (obj["kind"], obj["metadata"]["name"]): obj
        for group in GROUPS.values()
        for obj in map(without_script, copy.deepcopy(RENDERED[name].get(group, [])))
    }


def block_of(entry: Any) -> int:
    name = entry.get("name", "") if isinstance(entry, dict) else ""
    return next((place for place, block in enumerate(BLOCKS) if block.fullmatch(name)), -1)


def without_script(obj: Object) -> Object:
    """docs/compatibility.md: the container that waits for PyTorch's master has our own script.

    What other plugins add to it depended on chance in Volcano (``differsBetweenRuns``).
    """
    for container in obj["spec"].get("initContainers", []) if obj["kind"] == "Pod" else []:
        if container["name"] == "wait-for-master":
            container["command"] = container["command"][:2]
            for field in ("env", "volumeMounts"):
                container.pop(field, None)
    return obj


def as_recorded(obj: Object, pairs: Mapping[str, KeyPair]) -> Object:
    """What docs/compatibility.md rows 23 and 24 add is taken off: the ed25519 pair, and patterns.

    Keys are described, as they are in recordings; one that was not made by us stays as it is.
    """
    if obj["kind"] == "Secret":
        data = {key: base64.b64decode(value).decode() for key, value in obj["data"].items()}
        obj["data"] = {k: described(v, pairs) for k, v in data.items() if "ed25519" not in k}
        obj["data"]["config"], patterns = data["config"].split(PATTERNS_BEGIN)
        assert patterns.startswith("\nHost ")
    elif obj["kind"] == "Pod":
        for volume in obj["spec"].get("volumes", []):
            if items := volume.get("secret", {}).get("items"):
                volume["secret"]["items"] = [i for i in items if "ed25519" not in i["key"]]
    return obj


def described(text: str, pairs: Mapping[str, KeyPair]) -> str:
    """Key material by its description; everything else as it is."""
    rsa, ed25519 = pairs["ssh-rsa"], pairs["ssh-ed25519"]
    if text == rsa.private:
        key = load_pem_private_key(text.encode(), None)
        assert isinstance(key, RSAPrivateKey)
        assert text.startswith("-----BEGIN RSA PRIVATE KEY-----\n")
        return f"<private-key: RSA {key.key_size}, PKCS#1 PEM>"
    if text in (rsa.public, rsa.public + ed25519.public):
        assert re.fullmatch(r"ssh-rsa [A-Za-z0-9+/]+=*\n", rsa.public)
        return "<public-key: ssh-rsa, authorized_keys format, newline-terminated>"
    return text


def differences(
    ours: Any,
    recorded: Any,
    kind: str,
    order_varies: bool,
    path: str = "",
    *,
    stored: bool = False,
) -> Iterator[str]:
    """Where an object of ours is not as recorded.

    One that comes from an API server (``stored``) has what that fills in.
    """

    def is_filled_in(where: str) -> bool:
        general = re.sub(r"\[\d+\]", "[]", where)
        by_cluster = stored and kind in CLUSTERS_FILL and CLUSTERS_FILL[kind].fullmatch(general)
        return bool(by_cluster or SERVER_FILLS[kind].fullmatch(general))

    if isinstance(ours, dict) and isinstance(recorded, dict):
        for key in ours.keys() | recorded.keys():
            where = f"{path}.{key}" if path else key
            if key not in recorded:
                is_label = (key, ours[key]) in OURS.items() or ours[key] == OURS
                if not is_label and not (stored and is_filled_in(where)):
                    yield f"{where}: only ours: {ours[key]!r}"
            elif key in ours:
                yield from differences(
                    ours[key], recorded[key], kind, order_varies, where, stored=stored
                )
            elif not is_filled_in(where):
                yield f"{where}: only recorded: {recorded[key]!r}"
    elif isinstance(ours, list) and isinstance(recorded, list):
        if path == "spec.tolerations":  # the API server appends two
            recorded = recorded[: len(ours)]
        if len(ours) != len(recorded):
            yield f"{path}: {len(ours)} items, recorded {len(recorded)}"
        if order_varies:
            ours, recorded = sorted(ours, key=block_of), sorted(recorded, key=block_of)
        for index, (one, other) in enumerate(zip(ours, recorded, strict=False)):
            where = f"{path}[{index}]"
            yield from differences(one, other, kind, order_varies, where, stored=stored)
    elif ours != recorded or isinstance(ours, bool) != isinstance(recorded, bool):
        yield f"{path}: {ours!r}, recorded {recorded!r}"


class DerivedNames:
    """Replaces the derived names of claims and volumes as recordings replace the random ones."""

    def __init__(self, blueprint: Blueprint) -> None:
        job = blueprint.job.metadata.name
        made = [claim.name for claim in blueprint.claims if claim.spec is not None]
        self.claims = {name: f"{job}-pvc-<random-pvc-{n}>" for n, name in enumerate(made, 1)}
        self.job = job

    def replace(self, obj: Object) -> Object:
        text = json.dumps(obj)
        for name, shown in self.claims.items():
            text = text.replace(name, shown)
        if obj["kind"] == "Pod":
            volumes = [
                volume["name"]
                for volume in obj["spec"].get("volumes", [])
                if re.fullmatch(rf"{re.escape(self.job)}-[0-9a-f]{{12}}", volume["name"])
            ]
            for n, name in enumerate(volumes, 1):
                text = text.replace(f'"{name}"', f'"{self.job}-<random-vol-{n}>"')
        replaced: Object = json.loads(text)
        return replaced
