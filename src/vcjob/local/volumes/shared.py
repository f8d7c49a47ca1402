"""Files that many pods see, kept once: above all the host lists of a job in /etc/volcano.

A volume of ConfigMaps and Secrets is the same for every pod of a namespace that describes it in the
same words. With a directory each, a job of 500 pods made thousands of files (half of the time that
its start took), and a change of its size as many again.
"""

import hashlib
import os

import msgspec

from vcjob.api.types import Object
from vcjob.local.volumes import atomic
from vcjob.local.volumes.content import KINDS, Files
from vcjob.local.volumes.ownership import Ownership, make_directories

_SHARED_PARTS = frozenset(("configMap", "secret"))


class SharedFiles:
    """The shared volumes of a run, one directory each below ``directory``."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._held: dict[str, Files] = {}

    def place(self, namespace: str, volume: Object, owner: Ownership) -> str:
        """The directory for a volume, "" for one whose files are its pod's own."""
        source = {kind: volume[kind] for kind in KINDS if volume.get(kind) is not None}
        parts = (source.get("projected") or {}).get("sources") or [source]
        if any(
            value is not None for p in parts for k, value in p.items() if k not in _SHARED_PARTS
        ):
            return ""
        key = msgspec.json.encode((namespace, source, owner), order="deterministic")
        return os.path.join(self._directory, hashlib.sha256(key).hexdigest()[:32])

    def write(self, place: str, files: Files, owner: Ownership) -> None:
        """Make the directory hold ``files``, as of now for all that use it. Raises OSError."""
        if self._held.get(place) == files:
            return
        make_directories(place, owner)
        os.chown(place, owner.user, owner.group)
        os.chmod(place, 0o755)
        atomic.write_files(place, files, owner.user, owner.group)
        self._held[place] = files
