"""What the operator's log looks like."""

import errno
import io
import json
import logging

import pytest

from vcjob.cli.operator_log import set_up
from vcjob.controller.log_context import current_job


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def test_json_is_one_object_a_line_with_the_key_of_the_job(stream: io.StringIO) -> None:
    set_up("json", "info", stream)
    log = logging.getLogger("vcjob.somewhere")
    log.info("a %s\nline", "long")
    token = current_job.set("ml/mnist")
    log.warning("it waits", extra={"seconds": 3})
    current_job.reset(token)
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["level"], first["message"], "job" in first) == ("info", "a long\nline", False)
    assert second | {"time": ""} == {
        "time": "",
        "level": "warning",
        "message": "it waits",
        "job": "ml/mnist",
        "seconds": 3,
        "logger": "vcjob.somewhere",
    }
    assert second["time"].endswith("Z")


def test_text_says_the_same_in_one_line_without_control_characters(stream: io.StringIO) -> None:
    set_up("text", "info", stream)
    logging.getLogger("vcjob").warning("from\x1b[2J outside", extra={"job": "a/b", "code": 409})
    _, level, rest = stream.getvalue().rstrip("\n").split(maxsplit=2)
    assert (level, rest) == ("WARNING", "a/b: from\\x1b[2J outside code=409")


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_fault_comes_with_its_trace(form: str, stream: io.StringIO) -> None:
    set_up(form, "info", stream)
    try:
        raise ValueError("odd")
    except ValueError:
        logging.getLogger("vcjob").exception("a fault")
    assert "ValueError: odd" in stream.getvalue()
    if form == "json":
        assert "Traceback" in json.loads(stream.getvalue())["trace"]


def test_the_level_bounds_what_is_logged(stream: io.StringIO) -> None:
    set_up("text", "warning", stream)
    logging.getLogger("vcjob").info("no")
    assert stream.getvalue() == ""


def test_that_no_descriptor_is_left_is_said_once_a_minute_and_without_a_trace(
    stream: io.StringIO,
) -> None:
    set_up("text", "info", stream)
    log = logging.getLogger("asyncio")
    for _ in range(100):
        try:
            raise OSError(errno.EMFILE, "Too many open files")
        except OSError:
            log.exception("socket.accept() out of system resource")
    log.error("something else")
    told = [line.split(maxsplit=2)[2] for line in stream.getvalue().splitlines()]
    assert told == ["connections wait: Too many open files", "something else"]
