"""The engine as a process that serves: from its lock to its end."""

import asyncio
import contextlib
import errno
import gc
import ipaddress
import logging
import os
import signal
import socket
import ssl
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from vcjob import __version__
from vcjob.api.errors import VcjobError
from vcjob.api.kinds import Kind
from vcjob.api.types import Object
from vcjob.controller.os_errors import words_of
from vcjob.local.apiserver.core_defaults import with_defaults
from vcjob.local.apiserver.server import ApiServer, serve
from vcjob.local.disk.database import Database
from vcjob.local.doors.doors import doors
from vcjob.local.engine import NODE_NAME, Kept, LocalEngine
from vcjob.local.options import EngineOptions
from vcjob.local.service import kubeconfigs
from vcjob.local.service.credentials import Credentials, credentials
from vcjob.local.service.home import EngineHome, EngineRecord, write_private
from vcjob.local.service.housekeeping import keep_house
from vcjob.local.service.lost_pods import fail_lost_pods
from vcjob.local.service.renewing import CredentialsKeeper
from vcjob.local.sharing import Sharing
from vcjob.local.store import Store

LOOPBACK = "127.0.0.1"

_STOPPED = "Terminated"  # a kubelet's word for pods that its shutdown ends; an eviction
_STOPPED_MESSAGE = "the engine was stopped, and ended this pod"

_log = logging.getLogger(__name__)


class PortTaken(VcjobError):
    """The address that the engine was to listen on cannot be had."""


class ServiceOptions(msgspec.Struct, frozen=True):
    """How the engine serves.

    ``port`` 0 is that of the last time, if it is free. ``kubeconfig`` is written besides the
    engine's own; ``merge`` adds the engine to that file of the user's. Without its controller it is
    scheduler and node only, for an operator elsewhere; without its scheduler it leaves PodGroups,
    and pods that have no node, to others.
    """

    engine: EngineOptions = EngineOptions()
    host: str = LOOPBACK
    port: int = 0
    kubeconfig: Path | None = None
    merge: Path | None = None
    with_controller: bool = True
    with_scheduler: bool = True


Ready = Callable[[EngineRecord], None]
"""Called when requests are answered."""


def run_service(home: EngineHome, options: ServiceOptions, ready: Ready) -> int:
    """Serve until a signal, and return the exit code: 0 if that was asked for.

    SIGTERM and SIGINT end the pods with their grace periods, a second one or SIGQUIT at once. So
    does SIGHUP the first time, unless it was ignored from the start (``nohup``).
    Must be called before an event loop. Raises AlreadyRunning, StateUnusable, MachineCannot,
    PythonNotFound, PortTaken, KubeconfigRefused.
    """
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s"
    )
    lock = home.acquire()
    try:
        engine = LocalEngine(
            options.engine,
            of_service=True,
            with_controller=options.with_controller,
            with_scheduler=options.with_scheduler,
        )
        engine.prepare()
        try:
            database = Database(home.objects)
            store = Store(
                time.time, disk=database, share=Sharing().share, admission=_completed_when_new
            )
            gc.disable()  # everything that is loaded stays
            store.load(database.version, database.objects())
            secrets = credentials(home, _names(options.host))
            assert engine.machine  # raises PythonNotFound before anything is told
        except BaseException:
            engine.abandon()
            raise
        gc.freeze()  # not to be looked through again and again
        gc.enable()
        engine.kept = Kept(store, home.logs)
        engine.on_problem = _log.warning
        try:
            return asyncio.run(_serve(home, options, engine, store, secrets, ready))
        finally:
            database.close()
    finally:
        os.close(lock)


async def _serve(
    home: EngineHome,
    options: ServiceOptions,
    engine: LocalEngine,
    store: Store,
    secrets: Credentials,
    ready: Ready,
) -> int:
    stopping, at_once = _listen_for_signals()
    lost = await fail_lost_pods(store, NODE_NAME, time.time())
    if lost:
        _log.warning("%d pods had ended with an earlier engine", lost)
    async with engine, contextlib.AsyncExitStack() as stack:
        opened = doors(engine.agent)
        server = ApiServer(store, secrets.token, doors=opened, hosts=_names(options.host))
        context = secrets.server_context()
        port = await _open(stack, server, home, options, context)
        shown = f"[{options.host}]" if ":" in options.host else options.host
        record = EngineRecord(
            pid=os.getpid(),
            started=time.time(),
            address=f"https://{shown}:{port}",
            kubeconfig=str(options.kubeconfig or home.kubeconfig),
            version=__version__,
            merged=str(options.merge or ""),
            options=msgspec.structs.replace(
                options.engine, python=engine.machine.python.executable
            ),
        )
        stack.callback(forget, home, record)
        _tell_clients(home, options, record, secrets)
        ready(record)
        keeper = CredentialsKeeper(
            home,
            _names(options.host),
            context,
            secrets,
            tell=lambda renewed: _tell_clients(home, options, record, renewed),
        )
        await _any(stopping.wait(), engine.lost, keep_house(store), keeper.run())
        if engine.lost.done():
            _log.error("%s", engine.lost.result())
            return 1
        await _end_pods(engine, at_once)
    return 0


async def _open(
    stack: contextlib.AsyncExitStack,
    server: ApiServer,
    home: EngineHome,
    options: ServiceOptions,
    context: ssl.SSLContext,
) -> int:
    """Answer requests until the stack is left; returns the port, that of the last time if free."""
    remembered = home.path / "port"
    wishes = [options.port] if options.port else [_number(remembered), 0]
    for port in wishes:
        try:
            opened = serve(server, ssl_context=context, host=options.host, port=port)
            found = await stack.enter_async_context(opened)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and port and not options.port:
                continue
            raise PortTaken(
                f"cannot listen on {options.host} port {port}: {words_of(error)}; "
                "choose another one with --listen"
            ) from error
        write_private(remembered, str(found).encode())
        return found
    raise AssertionError("port 0 is always free")


def _number(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return 0


def _tell_clients(
    home: EngineHome, options: ServiceOptions, record: EngineRecord, secrets: Credentials
) -> None:
    content = kubeconfigs.kubeconfig(_for_clients(record), secrets.authority, secrets.token)
    kubeconfigs.write_kubeconfig(home.kubeconfig, content)
    if options.kubeconfig:
        kubeconfigs.write_kubeconfig(options.kubeconfig, content)
    if options.merge:
        kubeconfigs.merge(options.merge, content)
    home.write_record(record)


def _for_clients(record: EngineRecord) -> str:
    """The address as clients on this machine use it."""
    return record.address.replace("//0.0.0.0:", f"//{LOOPBACK}:").replace("//[::]:", "//[::1]:")


def forget(home: EngineHome, record: EngineRecord) -> None:
    """Take away what tells clients of an engine that has ended."""
    if record.merged:
        try:
            kubeconfigs.unmerge(Path(record.merged))
        except kubeconfigs.KubeconfigRefused as error:
            _log.warning("%s", error)
    home.forget(Path(record.kubeconfig))


async def _end_pods(engine: LocalEngine, at_once: asyncio.Event) -> None:
    """End all pods, with their grace periods unless that is cut short."""
    await _any(engine.shut_down(_STOPPED, _STOPPED_MESSAGE), at_once.wait(), engine.lost)


async def _any(*awaited: Awaitable[Any]) -> None:
    """Return when one of them is done, or raise what it raised; all but futures then end."""
    tasks = [asyncio.ensure_future(one) for one in awaited]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        if isinstance(task, asyncio.Task):
            task.cancel()
    await asyncio.wait([task for task in tasks if isinstance(task, asyncio.Task)])
    for task in done:
        task.result()


def _listen_for_signals() -> tuple[asyncio.Event, asyncio.Event]:
    """Events for the wish to stop, and to stop at once."""
    stopping, at_once = asyncio.Event(), asyncio.Event()

    def stop() -> None:
        if stopping.is_set():
            at_once.set()
        stopping.set()

    def stop_at_once() -> None:
        at_once.set()
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGQUIT, stop_at_once)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        # A terminal that is closed is often heard of twice: by the kernel and by the shell.
        loop.add_signal_handler(signal.SIGHUP, stopping.set)
    return stopping, at_once


def _completed_when_new(kind: Kind, obj: Object, old: Object | None) -> Object:
    """What the controller makes has the defaults that clients see in everybody else's objects."""
    return with_defaults(kind, obj) if old is None else obj


def _names(host: str) -> tuple[str, ...]:
    """Names and addresses by which clients reach what listens on ``host``."""
    if is_loopback(host):
        return ()
    if not ipaddress.ip_address(host).is_unspecified:
        return (host,)
    name = socket.gethostname()
    with contextlib.suppress(OSError):
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        return (name, *sorted({str(address[0]) for *_, address in found}))
    return (name,)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    return ipaddress.ip_address(host).is_loopback
