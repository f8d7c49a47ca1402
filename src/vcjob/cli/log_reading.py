"""Reading the output of many pods: once, or following them from their start to their end."""

import asyncio
import contextlib
import errno
import os
import resource
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial

import msgspec

from vcjob.api.errors import VcjobError
from vcjob.api.kinds import JOB, POD
from vcjob.api.names import JOB_NAME, pod_name
from vcjob.api.suggestions import suggest
from vcjob.api.types import Job, Object
from vcjob.cli.following import changes
from vcjob.cli.podtext import column_width, decode, for_terminal, short_pod_name
from vcjob.cli.progress import FINAL_PHASES
from vcjob.cli.screen import Screen, open_screen
from vcjob.cli.selection import (
    NothingSelected,
    Reference,
    belongs,
    find_job,
    find_pods,
    selects,
)
from vcjob.cli.target import Target
from vcjob.controller.cluster import ClusterError, EventType, Invalid, NotFound
from vcjob.kubernetes.logs import LogOptions, log_lines
from vcjob.kubernetes.resuming import RunState, followed_lines

_FLUSH_SECONDS = 0.2
_ENDED = ("Succeeded", "Failed")


class OutputLost(VcjobError):
    """What pods print cannot be written any more."""


class _Run(msgspec.Struct, frozen=True):
    """One run of one container of a pod."""

    pod: str
    container: str
    restarts: int
    uid: str


class LogReader:
    """The output of those pods of a Job that a reference names.

    Args:
        target: where the Job is.
        reference: what is named.
        options: which part of the output; an empty ``container`` means all of them.
        stack: on its end, what was shown has been written.
        labelled: whether lines get labels, None for: if there are several pods.
    """

    def __init__(
        self,
        target: Target,
        reference: Reference,
        options: LogOptions,
        stack: contextlib.ExitStack,
        *,
        labelled: bool | None,
    ) -> None:
        self._target = target
        self._reference = reference
        self._options = options
        self._stack = stack
        self._labelled = labelled
        self._job: Object = {}
        self._show: Callable[[str, bytes], None] = lambda label, line: None
        self._note: Callable[[str], None] = lambda text: None
        self._screen: Screen | None = None
        self._failed = False
        self._copied = False
        # Pods as they change; None: no more are to be looked at.
        self._found: asyncio.Queue[Object | None] = asyncio.Queue()

    async def read(self) -> bool:
        """Show what the pods have printed so far, pod after pod; True if something is missing."""
        self._job, pods = await find_pods(self._target, self._reference)
        self._check_container()
        self._open([pod["metadata"]["name"] for pod in pods])
        for pod in pods:
            for run in self._runs(pod, waiting=True):
                await self._copy(run, pod, self._options)
                self._stop_if_broken()
        # As with kubectl, no earlier run is a failure; of several containers, one is enough.
        return self._failed or (self._options.previous and not self._copied)

    async def follow(self) -> bool:
        """Show what the pods print until they have ended; True if something is missing."""
        self._job = await find_job(self._target, self._reference.job)
        names = _expected(self._job, self._reference)
        if not names:
            await find_pods(self._target, self._reference)  # says what is wrong
        self._check_container()
        self._open(names)
        # A connection for each container.
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        listed = await self._target.cluster.list(POD, self._namespace, self._labels)
        running = {run for pod in listed.items for run in self._runs(pod, waiting=False)}
        async with asyncio.TaskGroup() as group:
            helpers = [
                group.create_task(self._watch_job()),
                group.create_task(self._watch_pods(single=len(names) == 1)),
            ]
            if self._screen:
                helpers.append(group.create_task(self._flush_often()))
            await self._copy_until_ended(running)
            for helper in helpers:
                helper.cancel()
        return self._failed

    async def _copy_until_ended(self, before: set[_Run]) -> None:
        """Copy each run of each container; returns when the end has come and all is copied.

        Of runs that were not there ``before``, everything is new and wanted.
        """
        started: set[_Run] = set()
        whole = msgspec.structs.replace(self._options, tail=None, since_seconds=None)
        async with asyncio.TaskGroup() as group:
            while (found := await self._found.get()) is not None:
                for run in self._runs(found, waiting=False):
                    if run not in started:
                        started.add(run)
                        options = self._options if run in before else whole
                        group.create_task(self._copy(run, found, options))
        if not started:
            self._note(f"{self._reference} has printed nothing: no container of it has started")

    async def _watch_pods(self, *, single: bool) -> None:
        """Hand on the pods that are named; where only one can be, its end is the end."""
        async for kind, pod in changes(self._target.cluster, POD, self._namespace, self._labels):
            if kind is EventType.DELETED or not self._is_named(pod):
                continue
            self._found.put_nowait(pod)
            if single and (pod.get("status") or {}).get("phase") in _ENDED:
                self._found.put_nowait(None)

    async def _watch_job(self) -> None:
        """Hand on the Job's end, after the pods that were there then."""
        uid = self._job["metadata"]["uid"]
        async for kind, job in changes(self._target.cluster, JOB, self._namespace):
            if job["metadata"]["uid"] != uid:
                continue
            phase = (job.get("status") or {}).get("state", {}).get("phase")
            if kind is EventType.DELETED or phase in FINAL_PHASES:
                listed = await self._target.cluster.list(POD, self._namespace, self._labels)
                for pod in filter(self._is_named, listed.items):
                    self._found.put_nowait(pod)
                self._found.put_nowait(None)

    def _is_named(self, pod: Object) -> bool:
        name = self._job["metadata"]["name"]
        return belongs(pod, self._job) and selects(self._reference.part, name, pod)

    @property
    def _namespace(self) -> str:
        return str(self._job["metadata"]["namespace"])

    @property
    def _labels(self) -> dict[str, str]:
        return {JOB_NAME: self._job["metadata"]["name"]}

    def _runs(self, pod: Object, *, waiting: bool) -> Iterator[_Run]:
        """The containers' current runs; those that wait for their start only if ``waiting``."""
        spec = pod.get("spec") or {}
        names = [
            container["name"]
            for part in ("initContainers", "containers")
            for container in spec.get(part) or ()
        ]
        for name in names:
            if self._options.container not in ("", name):
                continue
            restarts, state = _status_of(pod, name)
            if waiting or "running" in state or "terminated" in state:
                metadata = pod["metadata"]
                yield _Run(metadata["name"], name, restarts, metadata["uid"])

    async def _copy(self, run: _Run, pod: Object, options: LogOptions) -> None:
        label = short_pod_name(self._job["metadata"]["name"], run.pod)
        parts = ("initContainers", "containers")
        if sum(len(pod["spec"].get(part) or ()) for part in parts) > 1:
            label = f"{label}/{run.container}"
        options = msgspec.structs.replace(options, container=run.container)
        open_lines = partial(
            log_lines, self._target.cluster.connection, pod["metadata"]["namespace"], run.pod
        )
        try:
            if options.follow:
                await self._copy_lines(
                    label, followed_lines(open_lines, options, partial(self._state_of, run))
                )
            else:
                async with open_lines(options) as lines:
                    await self._copy_lines(label, lines)
            self._copied = True
        except (NotFound, Invalid) as error:
            # Of a container that has not started there is nothing yet; that is no failure.
            self._note(f"{label}: {error}")
            self._failed = self._failed or isinstance(error, NotFound)
        except ClusterError as error:
            self._note(f"{label}: the output broke off: {error}")
            self._failed = True

    async def _state_of(self, run: _Run) -> RunState:
        """What has become of a run, as far as the pod's status knows."""
        try:
            pod = await self._target.cluster.get(POD, self._namespace, run.pod)
        except NotFound:
            return RunState.GONE
        restarts, state = _status_of(pod, run.container)
        if pod["metadata"]["uid"] != run.uid or restarts > run.restarts + 1:
            return RunState.GONE
        if restarts > run.restarts:
            return RunState.RESTARTED
        return RunState.RUNS if "running" in state else RunState.ENDED

    async def _copy_lines(self, label: str, lines: AsyncIterator[bytes]) -> None:
        async for line in lines:
            self._show(label, line)

    def _open(self, names: list[str]) -> None:
        job = self._job["metadata"]["name"]
        labelled = self._labelled if self._labelled is not None else len(names) > 1
        if labelled:
            width = column_width(short_pod_name(job, name) for name in names)
            self._screen = self._stack.enter_context(open_screen(width))
            self._show, self._note = self._screen.pod_line, self._screen.note
            return
        self._stack.callback(sys.stdout.buffer.flush)
        self._show = _show_on_terminal if sys.stdout.isatty() else _show_as_it_is
        self._note = lambda text: print(f"vcjob: {for_terminal(text)}", file=sys.stderr)

    async def _flush_often(self) -> None:
        while True:
            assert self._screen is not None
            self._screen.flush()
            self._stop_if_broken()
            await asyncio.sleep(_FLUSH_SECONDS)

    def _stop_if_broken(self) -> None:
        """Raise what ends the command when nothing can be shown any more."""
        if self._screen is None or not self._screen.broken:
            return
        if os.strerror(errno.EPIPE) in self._screen.broken:
            raise BrokenPipeError  # the reader (head, less) has enough: no more words
        raise OutputLost(self._screen.broken)

    def _check_container(self) -> None:
        """Refuse a container that no task of the Job has; raises NothingSelected."""
        wanted = self._options.container
        known = {
            container["name"]
            for task in self._job["spec"]["tasks"]
            for part in ("initContainers", "containers")
            for container in (task["template"].get("spec") or {}).get(part) or ()
        }
        if wanted and wanted not in known:
            hint = suggest(wanted, known)
            raise NothingSelected(
                f"no pod of {self._reference.job} has a container {wanted}; {hint}"
            )


def _expected(job: Object, reference: Reference) -> list[str]:
    """Names of the pods that the Job wants and the reference names."""
    view = Job.of(job)
    name = view.metadata.name
    part = short_pod_name(name, reference.part)
    pods = [
        (task.name, pod_name(name, task.name, index))
        for task in view.spec.tasks
        for index in range(task.replicas)
    ]
    return [pod for task, pod in pods if part in ("", task, short_pod_name(name, pod))]


def _status_of(pod: Object, container: str) -> tuple[int, Object]:
    """How often a container was restarted, and its state; before it has one, an empty one."""
    status = pod.get("status") or {}
    for part in ("initContainerStatuses", "containerStatuses"):
        for one in status.get(part) or ():
            if one["name"] == container:
                return one.get("restartCount", 0), one.get("state") or {}
    return 0, {}


def _show_as_it_is(label: str, line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def _show_on_terminal(label: str, line: bytes) -> None:
    _show_as_it_is(label, for_terminal(decode(line)).encode())
