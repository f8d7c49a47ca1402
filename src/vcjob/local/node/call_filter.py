"""What the kernel shares between all namespaces, closed to pods: key rings and VM sockets.

Key rings (keyrings(7)) belong to users, not to namespaces: a pod has the number of whoever started
vcjob, and could read their Kerberos tickets and passwords. Sockets of the family AF_VSOCK
(vsock(7)) reach services of this machine, and of the one around it, past every network namespace.
Container runtimes close both in the same way, by a seccomp(2) filter.

The filter is written out here: it is a few instructions, and the library that makes such filters
is not on every machine.
"""

import errno
import socket
import struct

import msgspec

from vcjob.local.node import syscalls

# linux/bpf_common.h: load a word, mask it, jump if equal, return.
_LOAD, _MASK, _JUMP_EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
# linux/seccomp.h: what a filter returns; where struct seccomp_data has what it loads.
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_WITHOUT_X32_BIT = 0xBFFFFFFF
_SYS_SOCKET = 1


class Architecture(msgspec.Struct, frozen=True):
    """``audit`` is AUDIT_ARCH_… of linux/audit.h; the numbers of calls are of asm/unistd.h.

    ``keys`` are add_key, request_key and keyctl. ``socketcall`` (0: there is none) makes sockets
    for old programs; which family they ask for cannot be seen there, so that it makes none.
    """

    audit: int
    keys: tuple[int, int, int]
    socket: int
    socketcall: int = 0


ARCHITECTURES = {
    "x86_64": Architecture(0xC000003E, (248, 249, 250), 41),
    "i386": Architecture(0x40000003, (286, 287, 288), 359, 102),
    "aarch64": Architecture(0xC00000B7, (217, 218, 219), 198),
    "arm": Architecture(0x40000028, (309, 310, 311), 281),
    "riscv64": Architecture(0xC00000F3, (217, 218, 219), 198),
    "ppc64le": Architecture(0xC0000015, (269, 270, 271), 326, 102),
}
"""One filter for all: a kernel runs programs of several (x86_64 those of i386, too)."""


def close_shared_calls() -> None:
    """Refuse the calls to this process and all that it starts from now on; raises OSError.

    This process has CAP_SYS_ADMIN in its user namespace.
    """
    syscalls.filter_calls(filter_program())


def filter_program() -> bytes:
    """The filter, an array of struct sock_filter (linux/filter.h)."""
    instructions = [_instruction(_LOAD, _ARCHITECTURE)]
    for architecture in ARCHITECTURES.values():
        block = _refusals(architecture)
        instructions.append(_instruction(_JUMP_EQUAL, architecture.audit, otherwise=len(block)))
        instructions += block
    instructions.append(_instruction(_RETURN, _ALLOW))
    return b"".join(instructions)


def _refusals(architecture: Architecture) -> list[bytes]:
    block = [_instruction(_LOAD, _NUMBER), _instruction(_MASK, _WITHOUT_X32_BIT)]
    for number in architecture.keys:
        block.append(_instruction(_JUMP_EQUAL, number, otherwise=1))
        block.append(_instruction(_RETURN, _REFUSE | errno.EPERM))
    sockets = [(architecture.socket, int(socket.AF_VSOCK))]
    if architecture.socketcall:
        sockets.append((architecture.socketcall, _SYS_SOCKET))
    for number, argument in sockets:
        block += (
            _instruction(_JUMP_EQUAL, number, otherwise=4),
            _instruction(_LOAD, _FIRST_ARGUMENT),
            _instruction(_JUMP_EQUAL, argument, otherwise=1),
            _instruction(_RETURN, _REFUSE | errno.EAFNOSUPPORT),
            _instruction(_RETURN, _ALLOW),
        )
    return [*block, _instruction(_RETURN, _ALLOW)]


def _instruction(code: int, value: int, otherwise: int = 0) -> bytes:
    """struct sock_filter; ``otherwise``: how many to jump over where a comparison fails."""
    return struct.pack("=HBBI", code, 0, otherwise, value)
