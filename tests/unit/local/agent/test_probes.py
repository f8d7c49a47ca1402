"""What probes make of their answers, and how they ask: against real sockets of this machine."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from vcjob.local.agent.probes import Failed, Opinion, Prober, Thresholds, Watch
from vcjob.local.agent.surroundings import Surroundings


@pytest.mark.parametrize(
    ("successes", "failures", "answers", "opinions"),
    [
        (1, 3, "+", "+"),
        (1, 3, "---", "  -"),
        (1, 3, "+--+---", "++++++-"),
        # An answer of the other kind begins the count anew.
        (1, 3, "--+--", "  +++"),
        (2, 1, "-+-++", "----+"),
        (3, 2, "+++-+--", "  ++++-"),
    ],
)
def test_a_probe_changes_its_mind_after_enough_answers_in_a_row(
    successes: int, failures: int, answers: str, opinions: str
) -> None:
    opinion, thresholds = Opinion(None), Thresholds(successes=successes, failures=failures)
    seen = ""
    for answer in answers:
        opinion = opinion.after(answer == "+", thresholds)
        seen += {None: " ", True: "+", False: "-"}[opinion.good]
    assert seen == opinions


def test_thresholds_have_kubernetes_defaults() -> None:
    assert Thresholds.of({"tcpSocket": {"port": 1}}) == Thresholds(0, 10, 1, 1, 3)


class Port:
    """A server of this machine that answers what it is told to, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answer = b"HTTP/1.1 200 OK\r\n\r\n"
        self.asked: list[bytes] = []
        self.asked_thrice = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            self.asked.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(self.answer)
            if len(self.asked) == 3:
                self.asked_thrice.set()
        writer.close()


class Asked:
    """A container with probes; ``seen`` is what was reported, ``changed`` tells of each."""

    def __init__(self, port: int, spec: dict[str, Any]) -> None:
        pod = {"status": {"podIP": "127.0.0.1"}}
        around = SimpleNamespace(node=SimpleNamespace(open_socket=open_socket))
        ports = [{"name": "web", "containerPort": port}]
        container = {"name": "c", "ports": ports, **spec}
        self.seen: list[Watch] = []
        self._changed = asyncio.Condition()
        self._prober = Prober(pod, container, cast(Surroundings, around))
        self.running = asyncio.create_task(self._prober.run(self._report))

    def _report(self, watch: Watch) -> None:
        self.seen.append(watch)
        asyncio.get_running_loop().create_task(self._tell())

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def until(self, watch: Watch) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self.seen and self.seen[-1] == watch)


async def open_socket(pod: str = "") -> socket.socket:
    opened = socket.socket()
    opened.setblocking(False)
    return opened


FAST = {"periodSeconds": 0.01}  # as the API has it in whole seconds: tests are not to take so long


def play(spec: dict[str, Any], story: Callable[[Asked, Port], Awaitable[None]]) -> None:
    async def main() -> None:
        port = Port()
        server = await asyncio.start_server(port.serve, "127.0.0.1")
        async with server:
            asked = Asked(server.sockets[0].getsockname()[1], spec)
            try:
                async with asyncio.timeout(20):
                    await story(asked, port)
            finally:
                asked.running.cancel()
                await asyncio.wait([asked.running])

    asyncio.run(main())


READY, UNREADY, NOT_STARTED = Watch(True, True), Watch(False, True), Watch(False, False)


@pytest.mark.parametrize(
    ("answer", "good"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", True),
        (b"HTTP/1.0 399 x\r\n\r\n", True),
        (b"HTTP/1.1 400 Bad\r\n\r\n", False),
        (b"HTTP/1.1 503 Busy\r\n\r\n", False),
        (b"SSH-2.0-OpenSSH\r\n", False),
        (b"", False),
    ],
)
def test_http_answers(answer: bytes, good: bool) -> None:
    async def story(asked: Asked, port: Port) -> None:
        if good:
            await asked.until(READY)
        else:
            failed = await asked.running
            assert failed.what == "liveness probe"

    probe = {"httpGet": {"port": "web", "path": "/health"}, **FAST}

    async def told(asked: Asked, port: Port) -> None:
        port.answer = answer
        await story(asked, port)
        assert port.asked[0].startswith(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:")

    play({"readinessProbe" if good else "livenessProbe": probe}, told)


def test_readiness_comes_and_goes_with_the_answers() -> None:
    async def story(asked: Asked, port: Port) -> None:
        await asked.until(READY)
        port.answer = b"HTTP/1.1 500 x\r\n\r\n"
        await asked.until(UNREADY)
        port.answer = b"HTTP/1.1 200 x\r\n\r\n"
        await asked.until(READY)
        assert asked.seen[0] == UNREADY

    play({"readinessProbe": {"httpGet": {"port": "web"}, **FAST}}, story)


def test_the_others_wait_for_the_startup_probe() -> None:
    async def story(asked: Asked, port: Port) -> None:
        port.answer = b"HTTP/1.1 500 x\r\n\r\n"
        await asked.until(NOT_STARTED)
        await port.asked_thrice.wait()
        assert asked.seen == [NOT_STARTED]
        port.answer = b"HTTP/1.1 200 x\r\n\r\n"
        await asked.until(READY)

    startup = {"httpGet": {"port": "web", "path": "/up"}, "failureThreshold": 10_000, **FAST}
    play({"startupProbe": startup, "readinessProbe": {"tcpSocket": {"port": "web"}}}, story)


@pytest.mark.parametrize("kind", ["startupProbe", "livenessProbe"])
def test_a_port_on_which_nobody_listens_fails(kind: str) -> None:
    with socket.socket() as bound:  # bound, so that nobody else takes it, and not listening
        bound.bind(("127.0.0.1", 0))
        probe = {
            "tcpSocket": {"port": bound.getsockname()[1]},
            "failureThreshold": 2,
            "terminationGracePeriodSeconds": 7,
            **FAST,
        }

        async def story(asked: Asked, port: Port) -> None:
            failed = await asked.running
            assert isinstance(failed, Failed)
            assert failed.what == kind.replace("Probe", " probe")
            assert "refused" in failed.message
            assert failed.grace == 7

        play({kind: probe}, story)


def test_no_answer_in_time_is_a_failure() -> None:
    async def story(asked: Asked, port: Port) -> None:
        failed = await asked.running
        assert failed.message == "no answer within 0.05 s"

    with socket.create_server(("127.0.0.1", 0)) as silent:
        get = {"port": silent.getsockname()[1]}
        probe = {"httpGet": get, "timeoutSeconds": 0.05, "failureThreshold": 1}
        play({"livenessProbe": probe}, story)


def test_a_host_that_has_no_address_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(host: str, *_: object, **__: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async def story(asked: Asked, port: Port) -> None:
        monkeypatch.setattr(socket, "getaddrinfo", unknown)
        failed = await asked.running
        assert failed.message == "Name or service not known"

    probe = {"httpGet": {"host": "nowhere", "port": 80}, "failureThreshold": 1, **FAST}
    play({"livenessProbe": probe}, story)
