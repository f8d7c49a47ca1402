"""The volumes of one pod on this machine: made, kept up to date, and shown to its containers."""

import os
from collections.abc import Mapping

import msgspec

from vcjob.api.kinds import PERSISTENT_VOLUME_CLAIM, Kind
from vcjob.api.quantity import parse_quantity
from vcjob.api.types import Object
from vcjob.local.node import messages
from vcjob.local.node.identity import IdMaps
from vcjob.local.sandbox.launcher import BindMount
from vcjob.local.sandbox.paths import UnsafePath, checked_name
from vcjob.local.volumes import atomic, plan
from vcjob.local.volumes.content import File, Files, references, volume_files
from vcjob.local.volumes.host_paths import (
    Allowed,
    allowed_directories,
    find_host_path,
    open_host_path,
)
from vcjob.local.volumes.objects import Find, MissingReference, VolumeRefused
from vcjob.local.volumes.ownership import (
    give_to_group,
    make_directories,
    make_writable,
    ownership,
)
from vcjob.local.volumes.plan import Mount
from vcjob.local.volumes.shared import SharedFiles
from vcjob.local.volumes.sub_paths import is_file, keep_today, make_directories_open_to_all


class VolumeWorld(msgspec.Struct, frozen=True):
    """What volumes depend on apart from the pod, the same for a whole run.

    ``claims`` is the directory with one directory per namespace and claim, ``host_paths`` and
    ``binds`` what the user allowed and shows (``--allow-host-path``, ``-v``), ``capacity`` what
    this machine has (quantities by resource name).
    """

    claims: str
    maps: IdMaps
    host_paths: tuple[str, ...] = ()
    binds: tuple[BindMount, ...] = ()
    capacity: Mapping[str, str] = {}

    @property
    def allowed(self) -> tuple[Allowed, ...]:
        """Directories that hostPath volumes may reach below: both kinds, links resolved."""
        return allowed_directories(self.host_paths, self.binds)


class ContainerMounts(msgspec.Struct, frozen=True):
    """``mounts`` for ``ContainerSandbox``; ``make`` goes before the launcher's options."""

    mounts: tuple[BindMount, ...]
    make: tuple[messages.MakeBelow, ...] = ()


class PodVolumes:
    """The volumes of a pod in ``directory``, which is the pod's own and goes with it.

    ``find`` looks objects up in the pod's namespace; ``shared`` keeps files that other pods see
    too. Methods raise MissingReference (what is missing may still come), VolumeRefused and
    UnsafePath (it will not help to wait).
    """

    def __init__(
        self,
        pod: Object,
        directory: str,
        find: Find,
        world: VolumeWorld,
        shared: SharedFiles | None = None,
    ) -> None:
        self._directory = directory
        self._find = find
        self._world = world
        self._namespace = str((pod.get("metadata") or {}).get("namespace") or "default")
        memory = int(parse_quantity(world.capacity.get("memory", "0")))
        self._volumes = plan.plan_volumes(pod.get("spec") or {}, memory)
        self._owner = ownership(pod, world.maps, privileged=os.geteuid() == 0)
        self._mounted: set[str] = set()
        self._shared = shared
        self._shared_places = {
            name: place
            for name, volume in self._volumes.items()
            if shared and isinstance(volume, plan.Content)
            if (place := shared.place(self._namespace, volume.volume, self._owner))
        }

    @property
    def references(self) -> frozenset[tuple[Kind, str]]:
        """The ConfigMaps and Secrets that ``update`` is to be called for when they change."""
        contents = (v for v in self._volumes.values() if isinstance(v, plan.Content))
        return frozenset().union(*(references(content.volume) for content in contents))

    def make(self, pod: Object) -> tuple[messages.Mount, ...]:
        """Make what the volumes need; what the answer lists is for the node to mount, once.

        May be called again after it raised.
        """
        wishes = []
        for name, volume in self._volumes.items():
            match volume:
                case plan.Memory(size):
                    self._make_directory(name)
                    if name not in self._mounted:
                        wishes.append(messages.Mount(self._place(name), size))
                case plan.Disk():
                    make_writable(self._make_directory(name), self._owner)
                case plan.Content(source):
                    files = self._files(source, pod)
                    if name not in self._shared_places:
                        directory = self._make_directory(name)
                        os.chown(directory, self._owner.user, self._owner.group)
                        os.chmod(directory, 0o755)
                    self._write(name, files)
                case plan.Claim(claim):
                    self._make_claim(claim)
                case plan.HostPath():
                    pass  # looked at when a container mounts it
        self._mounted.update(n for n, v in self._volumes.items() if isinstance(v, plan.Memory))
        return tuple(wishes)

    def update(self, pod: Object) -> None:
        """Bring files to what ConfigMaps, Secrets and the pod say now, each volume at once.

        Where something is missing now, the volume keeps its files, the others are brought up to
        date, and the first trouble is raised.
        """
        trouble: MissingReference | VolumeRefused | UnsafePath | None = None
        for name, volume in self._volumes.items():
            if isinstance(volume, plan.Content):
                try:
                    self._write(name, self._files(volume.volume, pod))
                except (MissingReference, VolumeRefused, UnsafePath) as error:
                    trouble = trouble or error
        if trouble:
            raise trouble

    def mounts(self, container: Object, variables: Mapping[str, str]) -> ContainerMounts:
        """What a container that starts now gets to see, the user's own ``-v`` included.

        Where both want the same place, the user's wins. A subPath is taken as it is now.
        """
        shown = {bind.target.rstrip("/") for bind in self._world.binds}
        make: list[messages.MakeBelow] = []
        found = [
            self._mount(mount, make)
            for mount in plan.container_mounts(container, variables)
            if mount.target.rstrip("/") not in shown
        ]
        return ContainerMounts((*found, *self._world.binds), tuple(make))

    def _mount(self, mount: Mount, make: list[messages.MakeBelow]) -> BindMount:
        volume = self._volumes.get(mount.volume)
        match volume:
            case None:
                raise VolumeRefused(
                    f'{mount.target} mounts a volume "{mount.volume}" that the pod does not have'
                )
            case plan.Content():
                return self._content_mount(mount)
            case plan.Memory() | plan.Disk():
                source, read_only = self._place(mount.volume), mount.read_only
            case plan.Claim(claim, claim_read_only):
                source, read_only = self._claim(claim), mount.read_only or claim_read_only
            case plan.HostPath():
                return self._host_mount(mount, volume)
        if mount.sub_path:
            # What lies in memory only the node can reach: it makes that when the container starts.
            if not isinstance(volume, plan.Memory):
                make_directories_open_to_all(source, mount.sub_path, self._owner)
            make.append(messages.MakeBelow(source, mount.sub_path))
        file = not isinstance(volume, plan.Memory) and is_file(source, mount.sub_path)
        return BindMount(source, mount.target, read_only, mount.sub_path, file)

    def _content_mount(self, mount: Mount) -> BindMount:
        """Read-only, as in Kubernetes. A part of it is a part of today's files, not a link."""
        directory = self._place(mount.volume)
        if not mount.sub_path:
            return BindMount(directory, mount.target, read_only=True)
        kept = keep_today(self._directory, mount.volume, directory, self._owner)
        if not os.path.lexists(os.path.join(kept, mount.sub_path)):
            raise MissingReference(
                f'{mount.target}: volume "{mount.volume}" has no file {mount.sub_path}'
            )
        file = os.path.isfile(os.path.join(kept, mount.sub_path))
        return BindMount(kept, mount.target, True, mount.sub_path, file)

    def _host_mount(self, mount: Mount, volume: plan.HostPath) -> BindMount:
        place = find_host_path(volume, self._world.allowed)
        open_host_path(volume, place)
        below = "/".join(part for part in (place.relative, mount.sub_path) if part)
        return BindMount(
            place.base,
            mount.target,
            mount.read_only or place.read_only,
            below,
            is_file(place.base, below),
        )

    def _files(self, volume: Object, pod: Object) -> Files:
        files = volume_files(volume, pod, self._find, self._world.capacity)
        return {
            path: File(file.data, self._owner.mode(file.mode, secret=file.secret), file.secret)
            for path, file in files.items()
        }

    def _write(self, name: str, files: Files) -> None:
        place = self._place(name)
        try:
            if self._shared and name in self._shared_places:
                self._shared.write(place, files, self._owner)
            else:
                atomic.write_files(place, files, self._owner.user, self._owner.group)
        except OSError as error:
            raise VolumeRefused(
                f'volume "{name}": its files cannot be written: {error.strerror}'
            ) from error

    def _make_claim(self, claim: str) -> None:
        directory = self._claim(claim)
        obj = self._find(PERSISTENT_VOLUME_CLAIM, claim)
        if obj is None and not os.path.isdir(directory):
            raise MissingReference(
                f'claim "{claim}" does not exist in namespace {self._namespace}, and none of an '
                "earlier run is kept; add a PersistentVolumeClaim to the file"
            )
        if obj is not None and (obj.get("spec") or {}).get("volumeMode") == "Block":
            raise VolumeRefused(f'claim "{claim}": block devices are not to be had here')
        if not os.path.isdir(directory):
            make_directories(directory, self._owner)
            make_writable(directory, self._owner)
        elif self._owner.shared:
            give_to_group(directory, self._owner)
            make_writable(directory, self._owner)

    def _claim(self, claim: str) -> str:
        return os.path.join(self._world.claims, checked_name(self._namespace), claim)

    def _place(self, name: str) -> str:
        return self._shared_places.get(name) or os.path.join(self._directory, "volumes", name)

    def _make_directory(self, name: str) -> str:
        place = self._place(name)
        make_directories(place, self._owner)
        return place
