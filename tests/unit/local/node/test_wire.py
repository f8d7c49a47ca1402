import os
import socket

from hypothesis import given
from hypothesis import strategies as st

from vcjob.local.node.wire import Inbox, Outbox


@given(st.lists(st.tuples(st.binary(max_size=2000), st.integers(0, 3)), max_size=8))
def test_frames_and_their_descriptors_arrive_in_order(sent: list[tuple[bytes, int]]) -> None:
    here, there = socket.socketpair()
    with here, there:
        outbox, inbox = Outbox(here), Inbox(there)
        identities = []
        for body, count in sent:
            fds = [os.memfd_create(f"fd{i}") for i in range(count)]
            identities.append([os.fstat(fd).st_ino for fd in fds])
            outbox.put(body, tuple(fds))
            for fd in fds:
                os.close(fd)
        assert outbox.flush()
        here.shutdown(socket.SHUT_WR)
        while inbox.receive():
            pass
        for (body, count), expected in zip(sent, identities, strict=True):
            assert inbox.frame() == body
            fds = inbox.take_fds(count)
            assert [os.fstat(fd).st_ino for fd in fds] == expected
            for fd in fds:
                os.close(fd)
        assert inbox.frame() is None


def test_a_frame_larger_than_the_socket_takes_goes_out_in_parts() -> None:
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        there.setblocking(False)
        outbox, inbox = Outbox(here), Inbox(there)
        body = os.urandom(3 << 20)
        outbox.put(body)
        rounds = 0
        while not outbox.flush():
            rounds += 1
            assert inbox.receive()
        while (frame := inbox.frame()) is None:
            inbox.receive()
        assert rounds > 0
        assert frame == body
