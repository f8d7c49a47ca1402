"""The Node object that stands for this machine: what it has, how it is, what runs on it.

Source: Kubernetes API reference, "Node"; Kubernetes documentation, "Well-Known Labels".
"""

import platform
import socket
from collections.abc import Mapping
from pathlib import Path

from vcjob import __version__
from vcjob.api.kinds import NODE
from vcjob.api.types import Object
from vcjob.core.times import timestamp

KUBERNETES_VERSION = "1.34"
"""The version of the Kubernetes API that the local engine follows."""
FULL_VERSION = f"v{KUBERNETES_VERSION}.0+vcjob.{__version__}"
"""The same, as API servers and kubelets tell it."""

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_MOST_PODS = 10_000
# The engine never turns pods away because of what else runs here, so that no pressure is ever told.
_PRESSURES = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "pods are placed while their requests fit"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "pods are placed whatever the disk holds"),
    "PIDPressure": ("KubeletHasSufficientPID", "pods are placed whatever else runs"),
}


def machine_node(name: str, capacity: Mapping[str, str], address: str, now: float) -> Object:
    """The Node of this machine.

    ``capacity`` is what pods can have together, as quantities; ``address`` is how pods reach the
    node; ``now`` (seconds since 1970) is when the engine became ready for pods.
    """
    amounts = {**capacity, "pods": str(_MOST_PODS)}
    host = socket.gethostname()
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture(),
    }
    return {
        "apiVersion": NODE.api_version,
        "kind": NODE.kind,
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": host},
            ],
            "conditions": _conditions(timestamp(now)),
            "nodeInfo": node_info(),
        },
    }


def node_info() -> dict[str, str]:
    """What runs on this machine. Every field is there: clients in Python insist on it."""
    return {
        "architecture": architecture(),
        "operatingSystem": "linux",
        "osImage": _distribution(),
        "kernelVersion": platform.release(),
        "containerRuntimeVersion": f"vcjob://{__version__}",
        "kubeletVersion": FULL_VERSION,
        "kubeProxyVersion": "",
        "machineID": _line("/etc/machine-id"),
        "bootID": _line("/proc/sys/kernel/random/boot_id"),
        "systemUUID": "",  # for root's eyes only
    }


def architecture() -> str:
    """The processor's architecture, by the name that Kubernetes has for it."""
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


def _conditions(now: str) -> list[Object]:
    told = {kind: ("False", *why) for kind, why in _PRESSURES.items()}
    told["Ready"] = ("True", "KubeletReady", "vcjob runs pods on this machine")
    return [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        for kind, (status, reason, message) in told.items()
    ]


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:  # there is no such file
        return "Linux"


def _line(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:  # not every machine has it, or shows it
        return ""
