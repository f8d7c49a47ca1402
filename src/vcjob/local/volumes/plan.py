"""What a pod's volumes are and where containers want them, from the manifest alone: pure."""

from collections.abc import Mapping

import msgspec

from vcjob.api.quantity import InvalidQuantity, parse_quantity
from vcjob.api.types import Object
from vcjob.local.sandbox.paths import checked_name, checked_relative
from vcjob.local.variables import expanded, unknown_variables
from vcjob.local.volumes.content import KINDS
from vcjob.local.volumes.objects import VolumeRefused


class Mount(msgspec.Struct, frozen=True):
    """A volumeMount: ``volume`` by name, ``sub_path`` checked, with its variables filled in."""

    volume: str
    target: str
    sub_path: str = ""
    read_only: bool = False


class Memory(msgspec.Struct, frozen=True):
    """An emptyDir in memory, of ``size`` bytes (0: the kernel's default, half of the memory)."""

    size: int = 0


class Disk(msgspec.Struct, frozen=True):
    """An emptyDir or ephemeral volume: a directory that goes with the pod."""


class Content(msgspec.Struct, frozen=True):
    """A volume whose files come from objects (``content.volume_files``)."""

    volume: Object


class Claim(msgspec.Struct, frozen=True):
    """A persistentVolumeClaim."""

    name: str
    read_only: bool = False


class HostPath(msgspec.Struct, frozen=True):
    """A hostPath; ``type`` as in the API, "" for no check."""

    path: str
    type: str = ""


Volume = Memory | Disk | Content | Claim | HostPath


def plan_volumes(spec: Object, memory: int = 0) -> Mapping[str, Volume]:
    """The pod's volumes by name. Raises VolumeRefused, UnsafePath.

    ``memory`` (bytes, 0: unknown) is what this machine has; no volume in memory gets more, nor
    more than the limits of the pod's containers together, where all have one.
    """
    most = _least(_memory_limit(spec), memory)
    return {
        checked_name(str(volume.get("name") or "")): _plan(volume, most)
        for volume in spec.get("volumes") or ()
    }


def container_mounts(container: Object, variables: Mapping[str, str]) -> tuple[Mount, ...]:
    """The volumeMounts of a container. Raises VolumeRefused, UnsafePath."""
    return tuple(_mount(mount, variables) for mount in container.get("volumeMounts") or ())


def _plan(volume: Object, most_memory: int) -> Volume:
    name = volume["name"]
    if any(volume.get(kind) is not None for kind in KINDS):
        return Content(volume)
    if volume.get("ephemeral") is not None:
        return Disk()
    if (claim := volume.get("persistentVolumeClaim")) is not None:
        return Claim(checked_name(str(claim.get("claimName") or "")), bool(claim.get("readOnly")))
    if (host := volume.get("hostPath")) is not None:
        return HostPath(str(host.get("path") or ""), str(host.get("type") or ""))
    types = [field for field in volume if field != "name" and volume[field] is not None]
    if types and types != ["emptyDir"]:
        raise VolumeRefused(
            f'volume "{name}": {types[0]} is not to be had on this machine; show a directory with '
            "-v SRC:DST, or use emptyDir, hostPath or a claim"
        )
    empty: Object = volume.get("emptyDir") or {}
    match empty.get("medium") or "":
        case "":
            return Disk()
        case "Memory":
            return Memory(_least(_size(name, empty.get("sizeLimit")), most_memory))
        case other:
            raise VolumeRefused(
                f'volume "{name}": emptyDir medium {other} is not to be had on this machine; '
                'there are "" and Memory'
            )


def _mount(mount: Object, variables: Mapping[str, str]) -> Mount:
    target = str(mount.get("mountPath") or "")
    sub_path = str(mount.get("subPath") or "")
    if expression := mount.get("subPathExpr"):
        if unknown := unknown_variables(expression, variables):
            raise VolumeRefused(
                f"subPathExpr {expression!r} at {target} names {', '.join(unknown)}, which the "
                "container's env does not have"
            )
        sub_path = expanded(expression, variables)
    if not target.startswith("/"):
        target = f"/{target}"  # relative to the root, as container runtimes take it
    if ".." in target.split("/") or "\0" in target or target.strip("/") == "":
        raise VolumeRefused(f"mountPath {target!r} cannot be a place for a volume")
    return Mount(
        volume=str(mount.get("name") or ""),
        target=target,
        sub_path=checked_relative(sub_path),
        read_only=bool(mount.get("readOnly")),
    )


def _memory_limit(spec: Object) -> int:
    limits = [
        ((container.get("resources") or {}).get("limits") or {}).get("memory")
        for container in spec.get("containers") or ()
    ]
    if not limits or None in limits:
        return 0
    return sum(_size("", limit) for limit in limits)


def _size(volume: str, quantity: str | int | None) -> int:
    try:
        return int(parse_quantity(quantity)) if quantity is not None else 0
    except InvalidQuantity as error:
        raise VolumeRefused(f'volume "{volume}": sizeLimit {error}') from error


def _least(*sizes: int) -> int:
    return min((size for size in sizes if size > 0), default=0)
