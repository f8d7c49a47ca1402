"""A container's status pipe: what is read from it, and when it counts as ended."""

import os

from vcjob.local.node.containers import Container
from vcjob.local.node.messages import StartContainer
from vcjob.local.node.spawn import Sandbox


def container() -> tuple[Container, int]:
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    request = StartContainer(container="c", pod="p", options=(), command=("true",))
    return Container(request, Sandbox(monitor=0, status=reader), None), writer


def test_a_pipe_without_news_has_not_ended() -> None:
    running, writer = container()
    assert running.read_status() is None
    os.write(writer, b'{"child-pid": 7}\n{"exit-')
    assert running.read_status() is True
    assert running.process == 7
    os.write(writer, b'code": 3}\n')
    os.close(writer)
    assert running.read_status() is True
    assert running.read_status() is False
    os.close(running.sandbox.status)
    ended = running.exited(0)
    assert (ended.exit_code, ended.started) == (3, True)


def test_a_sandbox_that_never_reported_did_not_start_its_program() -> None:
    failed, writer = container()
    os.close(writer)
    assert failed.read_status() is False
    os.close(failed.sandbox.status)
    ended = failed.exited(1 << 8)
    assert (ended.exit_code, ended.started) == (128, False)
