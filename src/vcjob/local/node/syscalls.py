"""The few Linux calls that Python 3.11 does not offer, through the C library.

Each raises OSError with the kernel's error number, like the functions in ``os``.
"""

import ctypes
import errno
import os
import signal
import struct

CLONE_PARENT = 0x00008000
CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_RELATIME = 0x200000

MNT_DETACH = 0x2

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = ctypes.c_ulong(2)
_SECCOMP_MODE_FILTER = ctypes.c_ulong(2)
_CAPABILITY_VERSION = 0x20080522

# The C library is opened once; use_errno keeps the error number per thread.
_libc = ctypes.CDLL(None, use_errno=True)
# The same for a call that returns in two processes: the interpreter's lock is kept meanwhile.
_libc_with_lock = ctypes.PyDLL(None, use_errno=True)

# __NR_clone of asm/unistd.h: the C library's own clone() wants a stack and a function.
_CLONE = {"x86_64": 56, "aarch64": 220, "riscv64": 220, "ppc64le": 120, "armv7l": 120, "i686": 120}


def _checked(result: int, path: str | None = None) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return result


def unshare(flags: int) -> None:
    """Move this process into new namespaces (``CLONE_NEW…``), see unshare(2)."""
    _checked(_libc.unshare(flags))


def fork_sibling() -> int:
    """Fork a process whose parent is this one's (CLONE_PARENT of clone(2)): 0 in the child.

    Only for a process without other threads.
    """
    number = _CLONE.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, f"clone(2) has no known number on {os.uname().machine}")
    flags = ctypes.c_ulong(CLONE_PARENT | signal.SIGCHLD)
    nothing = (ctypes.c_ulong(0),) * 4  # the stack is copied; no place is told
    process: int = _libc_with_lock.syscall(ctypes.c_long(number), flags, *nothing)
    _checked(process)
    return process


def setns(namespace: int, kind: int) -> None:
    """Move this process into the namespace an open descriptor refers to, see setns(2)."""
    _checked(_libc.setns(namespace, kind))


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """Mount a file system or change a mount, see mount(2)."""
    _checked(
        _libc.mount(
            os.fsencode(source),
            os.fsencode(target),
            kind.encode() if kind else None,
            ctypes.c_ulong(flags),
            options.encode() or None,
        ),
        target,
    )


def unmount(target: str, flags: int = 0) -> None:
    """Take a mount away, see umount2(2)."""
    _checked(_libc.umount2(os.fsencode(target), flags), target)


def signal_on_parent_death(number: signal.Signals) -> None:
    """Have the kernel send this process ``number`` when its parent ends (prctl(2))."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(number), 0, 0, 0))


def set_dumpable() -> None:
    """Let the processes of our user namespace look into this one's /proc files (prctl(2)).

    Changing user numbers takes that away.
    """
    _checked(_libc.prctl(_PR_SET_DUMPABLE, ctypes.c_ulong(1), 0, 0, 0))


def set_not_dumpable() -> None:
    """Let nobody look into this process until its next execve (prctl(2))."""
    _checked(_libc.prctl(_PR_SET_DUMPABLE, ctypes.c_ulong(0), 0, 0, 0))


def gain_no_privileges() -> None:
    """Let no execve give this process more than it has: set-uid programs do not (prctl(2))."""
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), 0, 0, 0))


def filter_calls(program: bytes) -> None:
    """Have the kernel ask a filter, an array of struct sock_filter, at each call (seccomp(2))."""
    instructions = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: how many instructions, padding, where they are.
    described = struct.pack("HP", len(program) // 8, ctypes.addressof(instructions))
    _checked(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, described, 0, 0))


def drop_from_bounding_set(capability: int) -> None:
    """Give up a capability, by number, for this process and all it starts (capabilities(7))."""
    _checked(_libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0))


def set_capabilities(capabilities: int) -> None:
    """Have exactly the capabilities of this set (a bit for each number), after execve too.

    See capset(2), and ambient capabilities in capabilities(7).
    """
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    halves = [
        part >> shift & 0xFFFFFFFF
        for shift in (0, 32)
        for part in (capabilities, capabilities, capabilities)
    ]
    _checked(_libc.capset(header, struct.pack("6I", *halves)))
    for number in range(capabilities.bit_length()):
        if capabilities >> number & 1:
            _checked(
                _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, ctypes.c_ulong(number), 0, 0)
            )
