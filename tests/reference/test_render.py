"""What genuine Volcano made of Jobs, compared with what a blueprint makes.

Rule of comparison: each field that we send stands in the recording with the same value, lists
have the same length and order; what the recording has beyond that is only what an API server
fills in. Where plugins worked in random order, only their blocks may stand in another order.
"""

import asyncio
import base64
import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from vcjob.api.defaults import apply_defaults
from vcjob.api.types import Job, Object
from vcjob.controller.key_pairs import make_key_pair
from vcjob.core.blueprint import Blueprint
from vcjob.plugins.registry import installed_plugins
from vcjob.plugins.ssh_config import PATTERNS_BEGIN

HERE = Path(__file__).parent
RECORDINGS = {
    path.stem: json.loads(path.read_text()) for path in sorted((HERE / "render").glob("*.json"))
}
GROUPS = {
    "Pod": "pods",
    "Service": "services",
    "ConfigMap": "configmaps",
    "NetworkPolicy": "networkpolicies",
    "Secret": "secrets",
    "PodGroup": "podgroups",
    "PersistentVolumeClaim": "persistentvolumeclaims",
}
REGISTRY = installed_plugins(third_party=False)
KEY_PAIRS = {
    name: asyncio.run(make_key_pair(algorithm))
    for name, algorithm in (("ssh-rsa", "rsa-2048"), ("ssh-ed25519", "ed25519"))
}
PLUGINS_HERE = {*REGISTRY.names(), "nosuch"}

# Our objects that Volcano did not get to make when the recording was taken, and why.
NOT_MADE = {
    "046-volume-missing-claim": ("*", "the claim does not exist, so the job waits"),
    "055-dependson-any": ("Pod", "the first task has to run before the others are made"),
    "062-job-name-dot": ("*", "the API server refused the Service, so the job waits"),
    "065-service-name-collision": ("*", "objects of these names belong to somebody else"),
    "066-secret-collision-ssh": ("Secret", "an object of this name belongs to somebody else"),
    "067-pod-name-taken": ("Pod", "a pod of this name belongs to somebody else"),
    "075-bypass-webhooks-unknown-plugin": ("*", "the plugin is unknown, so the job waits"),
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
            r"spec\.serviceAccount",
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
    return [
        name
        for name, recording in RECORDINGS.items()
        if PLUGINS_HERE.issuperset(recording["job"]["spec"].get("plugins", ()))
    ]


def blueprint_of(recording: dict[str, Any]) -> Blueprint:
    job = copy.deepcopy(recording["job"])
    job["metadata"]["uid"] = "<uid>"
    if not recording.get("undefaulted"):
        job = apply_defaults(job, requires=REGISTRY.requires)
    return Blueprint(Job.of(job), REGISTRY, KEY_PAIRS)


def objects_of(blueprint: Blueprint, recording: dict[str, Any]) -> list[Object]:
    priorities = {
        one["metadata"]["name"]: one["value"]
        for one in recording["before"]
        if one["kind"] == "PriorityClass"
    }
    return [
        *blueprint.supporting_objects(),
        blueprint.pod_group(priorities),
        *blueprint.pods(),
    ]


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


def as_recorded(obj: Object) -> Object:
    """What docs/compatibility.md rows 23 and 24 add is taken off: the ed25519 pair, and patterns.

    Keys are described, as they are in recordings; one that was not made by us stays as it is.
    """
    if obj["kind"] == "Secret":
        data = {key: base64.b64decode(value).decode() for key, value in obj["data"].items()}
        obj["data"] = {k: described(v) for k, v in data.items() if "ed25519" not in k}
        obj["data"]["config"], patterns = data["config"].split(PATTERNS_BEGIN)
        assert patterns.startswith("\nHost ")
    elif obj["kind"] == "Pod":
        for volume in obj["spec"].get("volumes", []):
            if items := volume.get("secret", {}).get("items"):
                volume["secret"]["items"] = [i for i in items if "ed25519" not in i["key"]]
    return obj


def described(text: str) -> str:
    rsa, ed25519 = KEY_PAIRS["ssh-rsa"], KEY_PAIRS["ssh-ed25519"]
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
    ours: Any, recorded: Any, kind: str, order_varies: bool, path: str = ""
) -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(recorded, dict):
        for key in ours.keys() | recorded.keys():
            where = f"{path}.{key}" if path else key
            if key not in recorded:
                if (key, ours[key]) not in OURS.items() and ours[key] != OURS:
                    yield f"{where}: only ours: {ours[key]!r}"
            elif key in ours:
                yield from differences(ours[key], recorded[key], kind, order_varies, where)
            elif not SERVER_FILLS[kind].fullmatch(re.sub(r"\[\d+\]", "[]", where)):
                yield f"{where}: only recorded: {recorded[key]!r}"
    elif isinstance(ours, list) and isinstance(recorded, list):
        if path == "spec.tolerations":  # the API server appends two
            recorded = recorded[: len(ours)]
        if len(ours) != len(recorded):
            yield f"{path}: {len(ours)} items, recorded {len(recorded)}"
        if order_varies:
            ours, recorded = sorted(ours, key=block_of), sorted(recorded, key=block_of)
        for index, (one, other) in enumerate(zip(ours, recorded, strict=False)):
            yield from differences(one, other, kind, order_varies, f"{path}[{index}]")
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


def test_all_recordings_are_here() -> None:
    assert len(RECORDINGS) == 51
    assert len(cases()) >= 37


@pytest.mark.parametrize("name", cases())
def test_a_job_becomes_what_volcano_made_of_it(name: str) -> None:
    recording = RECORDINGS[name]
    blueprint = blueprint_of(recording)
    names = DerivedNames(blueprint)
    all_of_it = objects_of(blueprint, recording)
    ours = {
        (obj["kind"], obj["metadata"]["name"]): obj
        for obj in map(as_recorded, map(without_script, map(names.replace, all_of_it)))
    }
    recorded = {
        (obj["kind"], obj["metadata"]["name"]): obj
        for group in GROUPS.values()
        for obj in map(without_script, copy.deepcopy(recording.get(group, [])))
    }
    assert not recorded.keys() - ours.keys()
    missing_kind, reason = NOT_MADE.get(name, ("", ""))
    unexpected = {key for key in ours.keys() - recorded.keys() if missing_kind not in ("*", key[0])}
    assert not unexpected, reason
    found = {
        key: list(differences(ours[key], obj, key[0], bool(recording.get("order_varies"))))
        for key, obj in recorded.items()
    }
    assert not {key: wrong for key, wrong in found.items() if wrong}
