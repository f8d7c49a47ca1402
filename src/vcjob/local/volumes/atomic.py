"""Files of a volume that change all at once, under the feet of programs that read them.

The layout is the one that programs know from Kubernetes: the files lie in a directory with the
time in its name, ``..data`` is a link to it, and each file's own name is a link through ``..data``.
A change makes a new directory and moves ``..data`` over in one rename.

Containers see these volumes read-only, so that only this process writes below them.
"""

import contextlib
import os
import stat
import tempfile
import time

from vcjob.local.sandbox.paths import remove_tree
from vcjob.local.volumes.content import File, Files

CURRENT = "..data"
_NEXT = "..data_tmp"


def write_files(directory: str, files: Files, owner: int = -1, group: int = -1) -> bool:
    """Make the existing ``directory`` hold exactly ``files``; False where it does already.

    ``owner`` and ``group`` are numbers of this machine, -1 to leave them. Raises OSError; then
    what was there before is still there, whole.
    """
    if _holds(directory, files):
        return False
    old = current_directory(directory)
    new = tempfile.mkdtemp(prefix=time.strftime("..%Y_%m_%d_%H_%M_%S."), dir=directory)
    try:
        _fill(new, files, owner, group)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, _NEXT))
        os.symlink(os.path.basename(new), os.path.join(directory, _NEXT))
        os.rename(os.path.join(directory, _NEXT), os.path.join(directory, CURRENT))
    except OSError:
        remove_tree(new)
        raise
    _set_links(directory, {path.partition("/")[0] for path in files})
    if old:
        remove_tree(old)
    return True


def current_directory(directory: str) -> str:
    """Where the files are now, "" before the first write. It is replaced with the next change."""
    try:
        return os.path.join(directory, os.readlink(os.path.join(directory, CURRENT)))
    except FileNotFoundError:
        return ""


def _fill(new: str, files: Files, owner: int, group: int) -> None:
    for path, file in files.items():
        parent, _, name = path.rpartition("/")
        folder = os.path.join(new, parent)
        os.makedirs(folder, exist_ok=True)
        fd = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "wb") as written:
            written.write(file.data)
            os.fchown(fd, owner, group)
            os.fchmod(fd, file.mode)
    for folder, _, _ in os.walk(new):
        os.chown(folder, owner, group)
        os.chmod(folder, 0o755)


def _set_links(directory: str, names: set[str]) -> None:
    for entry in os.listdir(directory):
        if not entry.startswith("..") and entry not in names:
            os.unlink(os.path.join(directory, entry))
    for name in names:
        with contextlib.suppress(FileExistsError):
            os.symlink(f"{CURRENT}/{name}", os.path.join(directory, name))


def _holds(directory: str, files: Files) -> bool:
    current = current_directory(directory)
    if not current:
        return False
    found = set()
    for folder, _, names in os.walk(current):
        for name in names:
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, current)
            file = files.get(relative)
            if file is None or not _is_as_wanted(path, file):
                return False
            found.add(relative)
    return found == files.keys()


def _is_as_wanted(path: str, file: File) -> bool:
    if stat.S_IMODE(os.stat(path).st_mode) != file.mode:
        return False
    try:
        with open(path, "rb") as there:
            return there.read() == file.data
    except PermissionError:  # a mode without a right to read, and we are not root
        return False
