"""Probes: whether a container has started, is ready, is alive. First what counts, then the asking.

Source: Kubernetes documentation, "Configure Liveness, Readiness and Startup Probes". Asked from the
node's own address, which no network policy keeps out.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable

import msgspec

from vcjob.api.types import Object
from vcjob.controller.os_errors import words_of
from vcjob.local.agent.inside import Inside
from vcjob.local.agent.surroundings import Surroundings
from vcjob.local.node.client import NodeRefused

_HANDLERS = ("exec", "httpGet", "tcpSocket")


class Thresholds(msgspec.Struct, frozen=True):
    """When a probe asks, in seconds, and after how many equal answers in a row it changes mind."""

    initial_delay: float = 0.0
    period: float = 10.0
    timeout: float = 1.0
    successes: int = 1
    failures: int = 3

    @classmethod
    def of(cls, probe: Object) -> "Thresholds":
        """Those of a probe, defaults filled in."""
        return cls(
            float(probe.get("initialDelaySeconds") or 0),
            float(probe.get("periodSeconds") or 10),
            float(probe.get("timeoutSeconds") or 1),
            int(probe.get("successThreshold") or 1),
            int(probe.get("failureThreshold") or 3),
        )


class Opinion(msgspec.Struct, frozen=True):
    """What a probe has come to: ``good`` after enough answers in a row, counted in ``streak``."""

    good: bool | None
    streak: int = 0
    latest: bool | None = None

    def after(self, answer: bool, thresholds: Thresholds) -> "Opinion":
        """The opinion after one more answer."""
        streak = self.streak + 1 if answer is self.latest else 1
        needed = thresholds.successes if answer else thresholds.failures
        return Opinion(answer if streak >= needed else self.good, streak, answer)


class Watch(msgspec.Struct, frozen=True):
    """The container's readiness and startedness as the probes see them now."""

    ready: bool
    started: bool


class Failed(msgspec.Struct, frozen=True):
    """A probe says that the container must be ended; ``grace`` is its own period, if it has one."""

    what: str
    message: str
    grace: float | None = None


class Answer(msgspec.Struct, frozen=True):
    """What was answered: good or not, and in words."""

    good: bool
    message: str = ""


class Prober:
    """The probes of one container of ``pod``; those that run programs need its ``inside``.

    ``tell`` is told why a container is not ready, once it has failed often enough in a row.
    """

    def __init__(
        self,
        pod: Object,
        container: Object,
        around: Surroundings,
        inside: Inside | None = None,
        tell: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._inside = inside
        self._tell = tell
        self._pod = pod
        self._container = container
        self._around = around
        self.has_any = any(self._probe(kind) for kind in ("startup", "readiness", "liveness"))

    async def run(self, report: Callable[[Watch], None]) -> Failed:
        """Ask until a probe says that the container must be ended; ``report`` what changes."""
        startup, readiness = self._probe("startup"), self._probe("readiness")
        if startup:
            report(Watch(False, False))
            failed = await self._until_failed("startup", startup, until_good=True)
            if failed:
                return failed
        report(Watch(not readiness, True))
        asking = []
        if readiness:
            asking.append(asyncio.create_task(self._follow_readiness(readiness, report)))
        if liveness := self._probe("liveness"):
            asking.append(asyncio.create_task(self._until_failed("liveness", liveness)))
        try:
            if not asking:  # the startup probe was the only one
                await asyncio.get_running_loop().create_future()
            done, _ = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
            failed = done.pop().result()
            assert failed is not None
            return failed
        finally:
            for task in asking:
                task.cancel()

    async def _until_failed(
        self, kind: str, probe: Object, *, until_good: bool = False
    ) -> Failed | None:
        """Ask until the probe has failed often enough; None if it passed and that is enough."""
        thresholds = Thresholds.of(probe)
        opinion = Opinion(None)
        await asyncio.sleep(thresholds.initial_delay)
        while True:
            answer = await self.answer(probe, thresholds.timeout)
            opinion = opinion.after(answer.good, thresholds)
            if opinion.good is False:
                grace = probe.get("terminationGracePeriodSeconds")
                return Failed(
                    f"{kind} probe", answer.message, None if grace is None else float(grace)
                )
            if opinion.good and until_good:
                return None
            await asyncio.sleep(thresholds.period)

    async def _follow_readiness(
        self, probe: Object, report: Callable[[Watch], None]
    ) -> Failed | None:
        thresholds = Thresholds.of(probe)
        opinion = Opinion(False)
        ready = False
        await asyncio.sleep(thresholds.initial_delay)
        while True:
            answer = await self.answer(probe, thresholds.timeout)
            opinion = opinion.after(answer.good, thresholds)
            if not answer.good and opinion.streak == thresholds.failures:
                self._tell(f"readiness probe failed: {answer.message}")
            if bool(opinion.good) is not ready:
                ready = bool(opinion.good)
                report(Watch(ready, True))
            await asyncio.sleep(thresholds.period)

    async def answer(self, probe: Object, timeout: float | None) -> Answer:
        """Ask once what a probe or a hook says; ``timeout`` is in seconds."""
        try:
            async with asyncio.timeout(timeout):
                if program := probe.get("exec"):
                    return await self._execute(program)
                if http := probe.get("httpGet"):
                    return await self._http(http)
                return await self._tcp(probe.get("tcpSocket") or {})
        except TimeoutError:
            return Answer(False, f"no answer within {timeout:g} s")
        except OSError as error:  # asyncio's own text for a refused connection is not for users
            return Answer(False, words_of(error))
        except (ValueError, NodeRefused) as error:
            return Answer(False, str(error))

    async def _execute(self, program: Object) -> Answer:
        assert self._inside is not None, "programs are run in containers that run"
        outcome = await self._inside.execute(program.get("command") or (), None)
        return Answer(outcome.exit_code == 0, outcome.message)

    async def _tcp(self, probe: Object) -> Answer:
        with contextlib.closing(await self._connect(probe)):
            return Answer(True)

    async def _http(self, probe: Object) -> Answer:
        connection = await self._connect(probe)
        context = None
        if probe.get("scheme") == "HTTPS":
            # As kubelet: what is asked is whether it answers, not who it is.
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        host = probe.get("host") or self._address
        reader, writer = await asyncio.open_connection(
            sock=connection, ssl=context, server_hostname=host if context else None
        )
        try:
            writer.write(_request(probe, f"{host}:{self._port(probe)}"))
            status = await reader.readline()
            version, _, rest = status.decode("latin-1").partition(" ")
            code = int(rest[:3])
            if not version.startswith("HTTP/"):
                raise ValueError("the answer is not HTTP")
            return Answer(200 <= code < 400, f"HTTP status {code}")
        finally:
            writer.close()

    async def _connect(self, probe: Object) -> socket.socket:
        connection = await self._around.node.open_socket()
        try:
            address = (probe.get("host") or self._address, self._port(probe))
            await asyncio.get_running_loop().sock_connect(connection, address)
        except BaseException:
            connection.close()
            raise
        return connection

    def _port(self, probe: Object) -> int:
        port = probe.get("port")
        if isinstance(port, int):
            return port
        for declared in self._container.get("ports") or ():
            if declared.get("name") == port:
                return int(declared["containerPort"])
        return int(str(port))

    @property
    def _address(self) -> str:
        return str(self._pod["status"]["podIP"])

    def _probe(self, kind: str) -> Object | None:
        """A probe that is asked here; docs/local.md says which are not."""
        probe: Object = self._container.get(f"{kind}Probe") or {}
        return probe if any(probe.get(handler) for handler in _HANDLERS) else None


def _request(probe: Object, host: str) -> bytes:
    path = probe.get("path") or "/"
    headers = {"Host": host, "User-Agent": "kube-probe/vcjob", "Accept": "*/*"}
    headers |= {one["name"]: one["value"] for one in probe.get("httpHeaders") or ()}
    lines = [f"GET {path if path.startswith('/') else '/' + path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\nConnection: close\r\n\r\n").encode("latin-1", "replace")
