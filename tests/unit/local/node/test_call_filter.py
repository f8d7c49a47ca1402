import errno
import socket
import struct

import pytest

from vcjob.local.node.call_filter import ARCHITECTURES, filter_program

ALLOWED = 0x7FFF0000
REFUSED = 0x00050000


def answer(architecture: int, number: int, argument: int = 0) -> int:
    """What the kernel would do: the filter run on struct seccomp_data (seccomp(2))."""
    data = struct.pack("=iIQ6Q", number, architecture, 0, argument, 0, 0, 0, 0, 0)
    program = list(struct.iter_unpack("=HBBI", filter_program()))
    at = loaded = 0
    while True:
        code, if_equal, otherwise, value = program[at]
        at += 1
        match code:
            case 0x20:
                (loaded,) = struct.unpack_from("=I", data, value)
            case 0x54:
                loaded &= value
            case 0x15:
                at += if_equal if loaded == value else otherwise
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(f"instruction {code:#x}")


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_key_rings_and_vm_sockets_are_refused_and_nothing_else(name: str) -> None:
    architecture = ARCHITECTURES[name]
    refused = {
        number: answer(architecture.audit, number, socket.AF_VSOCK)
        for number in range(600)
        if answer(architecture.audit, number, socket.AF_VSOCK) != ALLOWED
    }
    assert refused == {
        **dict.fromkeys(architecture.keys, REFUSED | errno.EPERM),
        architecture.socket: REFUSED | errno.EAFNOSUPPORT,
    }
    for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
        assert answer(architecture.audit, architecture.socket, family) == ALLOWED


@pytest.mark.parametrize("name", ["i386", "ppc64le"])
def test_the_old_way_to_a_socket_makes_none(name: str) -> None:
    architecture = ARCHITECTURES[name]
    make, bind = 1, 2
    assert answer(architecture.audit, architecture.socketcall, make) != ALLOWED
    assert answer(architecture.audit, architecture.socketcall, bind) == ALLOWED


def test_numbers_of_the_x32_abi_lead_to_the_same_calls() -> None:
    x86_64 = ARCHITECTURES["x86_64"]
    assert answer(x86_64.audit, 0x40000000 | x86_64.keys[2]) != ALLOWED


def test_programs_of_other_architectures_are_left_alone() -> None:
    assert answer(0x1234, 250) == ALLOWED
