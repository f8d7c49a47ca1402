import asyncio
import os
import socket

from vcjob.local.node.receiving_terminals import receive_terminal


async def received(*given: int) -> int | None:
    """What is made of these descriptors, of a peer that then has nothing more to say."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours:
        with theirs:
            if given:
                socket.send_fds(theirs, [b"t"], given)
        return await receive_terminal(ours)


def test_the_master_of_a_terminal_is_received_and_no_child_inherits_it() -> None:
    master, slave = os.openpty()
    fd = asyncio.run(received(master))
    assert fd is not None
    assert not os.get_inheritable(fd)
    assert os.path.samestat(os.fstat(fd), os.fstat(master))
    for opened in (fd, master, slave):
        os.close(opened)


def test_what_is_no_master_of_a_terminal_is_not_taken() -> None:
    master, slave = os.openpty()
    reader, writer = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    before = len(os.listdir("/proc/self/fd"))
    for given in (slave, reader, null):
        assert asyncio.run(received(given)) is None
    assert len(os.listdir("/proc/self/fd")) == before
    for opened in (master, slave, reader, writer, null):
        os.close(opened)


def test_a_program_that_ends_without_a_terminal_is_not_waited_for() -> None:
    assert asyncio.run(received()) is None
