"""Paths that manifests and containers have a say in: checked, then opened so that none leads out.

A container may put a symbolic link anywhere in a volume it can write to, at any time. So a path
below such a directory is never looked at first and opened later; it is opened by the kernel under
the rule that resolution stays below (openat2(2), RESOLVE_BENEATH; Linux 5.6), or, on older
kernels, one component after the other without following links.
"""

import ctypes
import errno
import os
import re
import stat

from vcjob.api.errors import VcjobError

_SYS_OPENAT2 = 437  # the same number on every architecture
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08

_DEPTH = 64

# ConfigMap and Secret keys: the API's rule (validation.IsConfigMapKey).
_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")

_libc = ctypes.CDLL(None, use_errno=True)


class UnsafePath(VcjobError):
    """A path that would leave its directory, or a name that is none."""


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def checked_key(key: str) -> str:
    """A ConfigMap or Secret key, safe as a file name; raises UnsafePath."""
    if not _KEY.fullmatch(key) or key in (".", "..") or key.startswith(".."):
        raise UnsafePath(f"{key!r} is no key: letters, digits, '-', '_' and '.', at most 253")
    return key


def checked_relative(path: str) -> str:
    """A relative path without ``..`` (item path, subPath); "" is allowed; raises UnsafePath."""
    if path.startswith("/"):
        raise UnsafePath(f"{path!r} must be relative")
    if "\0" in path or len(path) > 4095:
        raise UnsafePath(f"{path[:40]!r}… is no path")
    if ".." in path.split("/"):
        raise UnsafePath(f"{path!r} must not contain '..'")
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def checked_name(name: str) -> str:
    """A single path component (claim, volume or object name); raises UnsafePath."""
    if not name or "/" in name or "\0" in name or name in (".", "..") or len(name) > 253:
        raise UnsafePath(f"{name[:60]!r} cannot be a name of a directory")
    return name


def open_below(base: str, path: str, flags: int = os.O_PATH, mode: int = 0) -> int:
    """Open ``path`` (relative, "" for the directory itself) so that no link leads out of ``base``.

    The descriptor closes on exec. Raises UnsafePath where a link leads out, OSError otherwise.
    """
    relative = checked_relative(path)
    root = os.open(base, os.O_PATH | os.O_CLOEXEC)
    if not relative and flags == os.O_PATH:
        return root
    try:
        return _open_beneath(root, relative or ".", flags | os.O_CLOEXEC, mode)
    except OSError as error:
        if error.errno in (errno.EXDEV, errno.ELOOP):
            raise UnsafePath(f"{path!r} leads out of its volume by a link") from error
        raise
    finally:
        os.close(root)


def make_directories_below(base: str, path: str, mode: int = 0o755) -> None:
    """Make the directories of ``path`` below ``base`` that are missing; raises as open_below."""
    done = ""
    for part in checked_relative(path).split("/"):
        if not part:
            continue
        parent = open_below(base, done, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.mkdir(part, mode, dir_fd=parent)
        except FileExistsError:
            pass
        finally:
            os.close(parent)
        done = f"{done}/{part}" if done else part


def make_file_below(base: str, path: str) -> None:
    """Make an empty file, and the directories above it, where missing; raises as open_below."""
    folder, _, _ = checked_relative(path).rpartition("/")
    make_directories_below(base, folder)
    os.close(open_below(base, path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK, 0o644))


def remove_tree(path: str) -> None:
    """Remove a directory and all in it, never following a link and never leaving its file system.

    A path that does not exist is fine; directories without permission bits are opened up first.
    Raises OSError.
    """
    parent, name = os.path.split(path.rstrip("/"))
    folder = os.open(parent or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _remove_entry(folder, name, os.fstat(folder).st_dev)
    finally:
        os.close(folder)


def _remove_entry(folder: int, name: str, device: int) -> None:
    """Remove one entry. An own stack instead of recursion: depth is the container's choice."""
    stack: list[tuple[int, str, list[str]]] = []
    pending: list[tuple[int, str]] = [(folder, name)]
    moved = 0
    while pending or stack:
        if not pending:
            fd, done, entries = stack[-1]
            if entries:
                pending.append((fd, entries.pop()))
                continue
            stack.pop()
            os.close(fd)
            os.rmdir(done, dir_fd=stack[-1][0] if stack else folder)
            continue
        above, entry = pending.pop()
        try:
            found = os.stat(entry, dir_fd=above, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if not stat.S_ISDIR(found.st_mode):
            os.unlink(entry, dir_fd=above)
            continue
        if found.st_dev != device:
            raise OSError(errno.EXDEV, "another file system is mounted there", entry)
        fd = _open_directory(entry, above)
        if len(stack) < _DEPTH:
            stack.append((fd, entry, os.listdir(fd)))
            continue
        # Each level holds a descriptor: deeper directories are moved up and wait their turn.
        os.close(fd)
        moved += 1
        os.rename(entry, f"..{moved}", src_dir_fd=above, dst_dir_fd=stack[0][0])
        stack[0][2].append(f"..{moved}")


def _open_directory(name: str, above: int) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, dir_fd=above)
    except PermissionError:
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        try:
            os.chmod(f"/proc/self/fd/{handle}", 0o700)
        finally:
            os.close(handle)
        return os.open(name, flags, dir_fd=above)
    if os.fstat(fd).st_mode & 0o300 != 0o300:
        os.fchmod(fd, 0o700)
    return fd


def _open_beneath(root: int, path: str, flags: int, mode: int) -> int:
    how = _OpenHow(flags, mode, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    fd = _libc.syscall(_SYS_OPENAT2, root, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
    if fd >= 0:
        return int(fd)
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EPERM):  # older kernel, or a filter that does not know it
        return _open_by_components(root, path, flags, mode)
    raise OSError(number, os.strerror(number), path)


def _open_by_components(root: int, path: str, flags: int, mode: int) -> int:
    """Without openat2: every component is opened in the one before, and none may be a link."""
    current = os.dup(root)
    try:
        *folders, last = path.split("/")
        for part in folders:
            following = os.open(
                part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current
            )
            os.close(current)
            current = following
        fd = os.open(last, flags | os.O_NOFOLLOW, mode, dir_fd=current)
        if flags & os.O_PATH and stat.S_ISLNK(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        return fd
    finally:
        os.close(current)
