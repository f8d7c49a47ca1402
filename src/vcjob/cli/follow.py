"""Following Jobs to their end: what changes is shown, signals and time-outs stop them gracefully.

The end of a Job is a final phase and no pod that is still being stopped: what a Job that is decided
no longer needs has its grace period too.

Everything that can happen (a Job or an Event changed, a signal, the time is up, the engine is lost)
comes through one queue to one loop, so that no two of them race.

The first Ctrl-C (or SIGTERM, SIGHUP) terminates the Jobs as a TerminateJob Command does, with their
pods' grace periods; the second ends everything at once. So does a reader that goes away (``head``),
unless it was interrupted with us (``tee``).

A terminal that is closed is heard of several times: from the kernel, from the shell and by writes
that fail. So a hang-up never counts as the second signal. Where SIGHUP was ignored from the start
(``nohup``) it does nothing.
"""

import asyncio
import signal
import time
from collections.abc import Iterable, Sequence
from enum import Enum, auto

import msgspec

from vcjob.api.kinds import COMMAND, EVENT, JOB, Kind
from vcjob.api.types import Job, Object
from vcjob.cli.exit_codes import ExitCode, of_phases
from vcjob.cli.lingering import Lingering
from vcjob.cli.orders import order
from vcjob.cli.progress import FINAL_PHASES, standing, status_line, task_counts
from vcjob.cli.screen import Screen
from vcjob.controller.cluster import Cluster, EventType
from vcjob.core.actions import Action
from vcjob.core.phases import JOB_FAILED
from vcjob.core.reasons import PLUGIN_WARNING

_TICK_SECONDS = 0.2

# What plugins warn of is shown before the first object is made, why a Job failed with its phase.
_SAID_ANYWAY = (PLUGIN_WARNING, JOB_FAILED)
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Happening(Enum):
    STOP_SIGNAL = auto()
    HANG_UP = auto()
    TIME_IS_UP = auto()
    TICK = auto()


class Ending(msgspec.Struct, frozen=True):
    """How following ended: the Jobs as last seen, the exit code, and the time it took (seconds).

    ``killed``: the run ended under its pods (interrupted twice, or the engine was lost).
    ``until_then``: by UID, where each Job stood that the run itself has ended (a signal, a
    time-out).
    """

    jobs: list[Job]
    code: ExitCode
    seconds: float
    killed: bool
    until_then: dict[str, str]


class Follower:
    """Shows the Jobs of one run until each is over or something ends the run.

    Args:
        cluster: where the Jobs live.
        screen: where to show.
        all_events: show Normal Events too, not only Warnings.
    """

    def __init__(self, cluster: Cluster, screen: Screen, *, all_events: bool) -> None:
        self._cluster = cluster
        self._screen = screen
        self._all_events = all_events
        self._jobs: dict[str, Job] = {}
        self._deleted: set[str] = set()
        self._until_then: dict[str, str] = {}
        self._shown: dict[str, str] = {}
        self._lingering = Lingering()
        self._events_shown: dict[str, int] = {}
        self._happenings: asyncio.Queue[_Happening | tuple[Kind, Object] | str] = asyncio.Queue()
        self._started = time.monotonic()

    async def follow(
        self, jobs: Sequence[Object], timeout: float | None, lost: asyncio.Future[str]
    ) -> Ending:
        """Follow ``jobs`` (as created) to the end.

        Args:
            jobs: the Jobs.
            timeout: seconds after which the Jobs are terminated, None for never.
            lost: resolves with a sentence if the engine stops under us.
        """
        for job in jobs:
            self._jobs[job["metadata"]["uid"]] = Job.of(job)
        lost.add_done_callback(self._on_lost)
        loop = asyncio.get_running_loop()
        signals = dict.fromkeys(_STOP_SIGNALS, _Happening.STOP_SIGNAL)
        if _ends_by_hang_up():
            signals[signal.SIGHUP] = _Happening.HANG_UP
        for number, happening in signals.items():
            loop.add_signal_handler(number, self._happenings.put_nowait, happening)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._watch(JOB)),
                    group.create_task(self._watch(EVENT)),
                    group.create_task(self._tick()),
                ]
                if timeout is not None:
                    tasks.append(group.create_task(self._time_out(timeout)))
                code = await self._until_ended()
                for task in tasks:
                    task.cancel()
        finally:
            for number in signals:
                loop.remove_signal_handler(number)
        if self._all_events:  # a Job's end is told by an Event that follows it
            for event in (await self._cluster.list(EVENT)).items:
                self._on_event(event)
        ended = list(self._jobs.values())
        seconds = time.monotonic() - self._started
        return Ending(ended, code, seconds, not self._all_over(), self._until_then)

    async def _until_ended(self) -> ExitCode:
        stop_signals, was_broken = 0, False
        while True:
            happening = await self._happenings.get()
            match happening:
                case (kind, obj) if kind == JOB:
                    self._on_job(obj)
                case (_, obj):
                    self._on_event(obj)
                case _Happening.TICK:
                    self._screen.flush()
                    self._tell_what_lingers()
                    if self._screen.broken and self._screen.on_terminal:
                        if _ends_by_hang_up():
                            self._happenings.put_nowait(_Happening.HANG_UP)
                    elif self._screen.broken and not stop_signals:
                        # What interrupted the reader may reach us a moment later.
                        if was_broken:
                            self._screen.note(f"{self._screen.broken}; stopping at once")
                            return ExitCode.FAILED
                        was_broken = True
                    self._screen.status(
                        status_line(list(self._jobs.values()), time.monotonic() - self._started)
                    )
                case _Happening.TIME_IS_UP if not _all_final(self._jobs.values()):
                    self._screen.note("the time-out is over: terminating")
                    await self._terminate("the time-out of vcjob run")
                case _Happening.TIME_IS_UP:
                    pass  # what still runs is being stopped
                case _Happening.HANG_UP if stop_signals:
                    pass
                case _Happening.STOP_SIGNAL | _Happening.HANG_UP:
                    stop_signals += 1
                    if stop_signals > 1:
                        self._screen.note("interrupted again: stopping at once")
                        return ExitCode.INTERRUPTED
                    self._screen.note(
                        "interrupted: terminating the pods with their grace periods; "
                        "interrupt again to stop at once"
                    )
                    await self._terminate("vcjob run was interrupted")
                case str(reason):
                    self._screen.note(reason)
                    return ExitCode.INTERRUPTED if stop_signals else ExitCode.FAILED
            if self._all_over():
                if stop_signals:
                    return ExitCode.INTERRUPTED
                return of_phases(job.status.state.phase for job in self._jobs.values())

    def _all_over(self) -> bool:
        """Whether all Jobs are in a final phase, and what still ran then has been stopped."""
        return _all_final(self._jobs.values()) and not any(
            _has_living_pods(job) for uid, job in self._jobs.items() if uid not in self._deleted
        )

    def _on_lost(self, lost: asyncio.Future[str]) -> None:
        if not lost.cancelled():
            self._happenings.put_nowait(lost.result())

    def _on_job(self, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        if uid not in self._jobs:
            return
        job = self._jobs[uid] = Job.of(obj)
        state = job.status.state
        runs = state.phase == "Running"
        if state.phase and state.phase != self._shown.get(uid):
            self._shown[uid] = state.phase
            if runs:  # which pods lag is of interest only if they do for long
                self._screen.note(f"{job.metadata.name} is {state.phase} ({task_counts(job)})")
            else:
                why = f": {state.message}" if state.message else ""
                self._screen.note(f"{job.metadata.name} is {state.phase}{why}")
                self._lingering.was_told(uid, state.message)
        self._lingering.says(uid, state.message, time.monotonic())

    def _tell_what_lingers(self) -> None:
        for uid, message in self._lingering.due(time.monotonic()):
            job = self._jobs[uid]
            self._screen.note(f"{job.metadata.name} is {job.status.state.phase}: {message}")

    def _on_event(self, event: Object) -> None:
        reason = event.get("reason")
        is_news = event.get("type") == "Warning" and reason not in _SAID_ANYWAY
        is_news = is_news or reason == "Killing"  # a pod that does not end at once
        if not is_news and not self._all_events:
            return
        involved = event.get("involvedObject", {})
        key, count = event["metadata"]["name"], event.get("count", 1)
        if self._events_shown.get(key) == count:
            return
        self._events_shown[key] = count
        self._lingering.was_told(involved.get("uid", ""), event.get("message", ""))
        where = f"{involved.get('kind', '')} {involved.get('name', '')}".strip()
        times = f" (x{count})" if count > 1 else ""
        warning = "Warning " if event.get("type") == "Warning" else ""
        self._screen.note(f"{warning}{reason} on {where}{times}: {event.get('message', '')}")

    async def _terminate(self, why: str) -> None:
        for uid, job in self._jobs.items():
            if job.status.state.phase in FINAL_PHASES:
                continue
            self._until_then.setdefault(uid, standing(job))
            await self._cluster.create(COMMAND, order(job, Action.TERMINATE_JOB, why))

    async def _watch(self, kind: Kind) -> None:
        listed = await self._cluster.list(kind)
        for obj in listed.items:
            self._happenings.put_nowait((kind, obj))
        async for event in self._cluster.watch(kind, listed.resource_version):
            if event.type is EventType.DELETED and kind == JOB:
                self._deleted.add(event.object["metadata"]["uid"])  # at the end of its time to live
            if event.type in (EventType.ADDED, EventType.MODIFIED):
                self._happenings.put_nowait((kind, event.object))

    async def _tick(self) -> None:
        while True:
            self._happenings.put_nowait(_Happening.TICK)
            await asyncio.sleep(_TICK_SECONDS)

    async def _time_out(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._happenings.put_nowait(_Happening.TIME_IS_UP)


def _ends_by_hang_up() -> bool:
    """Whether whoever started us wants us to end when the terminal is closed (not ``nohup``)."""
    return signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN


def _all_final(jobs: Iterable[Job]) -> bool:
    return all(job.status.state.phase in FINAL_PHASES for job in jobs)


def _has_living_pods(job: Job) -> bool:
    status = job.status
    return bool(status.pending or status.running or status.terminating or status.unknown)
