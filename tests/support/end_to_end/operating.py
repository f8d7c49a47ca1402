"""The processes of vcjob that work on a tested cluster, where it has none of its own."""

import contextlib
import json
import re
import signal
import ssl
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
from operators import Operator
from reviews import patched, review

from end_to_end.target import Target
from vcjob.api.types import Object
from vcjob.controller.certificates import make_certificate

_PORTS = re.compile(r"reviews at port (\d+), probes and metrics at port (\d+)")
_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.05


@dataclass
class Operating:
    """The operator that the tests started."""

    start: Callable[[], Operator]
    process: Operator

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.end(signal.SIGKILL)

    def start_again(self) -> None:
        """Start another one."""
        self.process = self.start()


class Verdict(msgspec.Struct, frozen=True):
    """What became of an object at admission: as it was completed, or why it was refused."""

    object: Object | None = None
    reason: str = ""


class Webhook:
    """A webhook that is asked as API servers ask it."""

    def __init__(self, port: int, trusted: ssl.SSLContext) -> None:
        self._address = f"https://localhost:{port}"
        self._trusted = trusted

    def admit(self, job: Object) -> Verdict:
        """Have a new Job completed and checked."""
        response = self._ask("/jobs/mutate", review(job))
        if not response["allowed"]:
            return Verdict(reason=response["status"]["message"])
        completed = patched(job, response)
        return self._verdict(completed, self._ask("/jobs/validate", review(completed)))

    def change(self, old: Object, new: Object) -> Verdict:
        """Have a change of a Job checked."""
        return self._verdict(new, self._ask("/jobs/validate", review(new, "UPDATE", old=old)))

    def _verdict(self, obj: Object, response: Object) -> Verdict:
        if response["allowed"]:
            return Verdict(obj)
        return Verdict(reason=response["status"]["message"])

    def _ask(self, path: str, question: Object) -> Any:
        request = urllib.request.Request(
            self._address + path,
            json.dumps(question).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, context=self._trusted, timeout=20) as answer:
            answered = json.load(answer)
        assert answered["response"]["uid"] == question["request"]["uid"]
        return answered["response"]


@contextlib.contextmanager
def webhook_of_tests(target: Target, directory: Path) -> Iterator[Webhook]:
    """``vcjob webhook`` with a certificate of its own, so that it writes nothing on the cluster."""
    made = make_certificate(("localhost",), datetime.now(UTC), owner="end-to-end tests")
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    certificate.write_bytes(made.certificate)
    key.touch(0o600)
    key.write_bytes(made.key)
    process = Operator(
        target.config,
        *(("--context", target.context) if target.context else ()),
        *("--address", "127.0.0.1:0", "--certificate", str(certificate), "--key", str(key)),
        command="webhook",
    )
    try:
        found = _PORTS.search(process.says("reviews at port"))
        assert found
        wait_until_ready(process)
        trusted = ssl.create_default_context(cadata=made.authority.decode())
        yield Webhook(int(found[1]), trusted)
    finally:
        process.end(signal.SIGKILL)
        assert process.process.stderr
        process.process.stderr.close()


def wait_until_ready(process: Operator) -> None:
    """Wait until a process can do its work; fails with what it lacks."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        if process.process.poll() is not None:
            raise AssertionError("it has ended: " + "\n".join(process.log))
        code, said = process.ask("/readyz")
        if code == HTTPStatus.OK:
            return
        assert time.monotonic() < deadline, said
        time.sleep(_PAUSE_SECONDS)
