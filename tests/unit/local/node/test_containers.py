"""A container's status pipe: what is read from it, and when it counts as ended."""

import os
import signal
import subprocess

from vcjob.local.node.containers import Container
from vcjob.local.node.messages import StartContainer
from vcjob.local.node.spawn import Sandbox
from vcjob.local.sandbox.launcher import DEFAULT_CAPABILITIES


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


def test_a_signal_to_a_process_that_was_collected_is_no_error() -> None:
    running, writer = container()
    with subprocess.Popen(["true"]) as ended:
        pass
    os.write(writer, b'{"child-pid": %d}\n' % ended.pid)
    os.close(writer)
    assert running.read_status() is True
    running.send(signal.SIGTERM)
    os.close(running.sandbox.status)


def test_capabilities_are_read_from_what_the_sandbox_is_told() -> None:
    options = [text for name in DEFAULT_CAPABILITIES for text in ("--cap-add", name)]
    request = StartContainer(container="c", pod="p", options=tuple(options), command=("true",))
    # containerd's default set, as capsh --decode=00000000a80425fb spells it.
    assert Container(request, Sandbox(0, 0), None).capabilities == 0xA80425FB
