"""What ``vcjob run`` says of Jobs: one line while they run, a few lines when they have ended.

Pure: from Job objects and seconds to text.
"""

from collections.abc import Sequence

import msgspec

from vcjob.api.types import Job, Object
from vcjob.local.agent.podphase import run_number

FINAL_PHASES = frozenset({"Completed", "Failed", "Terminated", "Aborted"})
_ENDED = ("Failed", "Succeeded")


class PodEnd(msgspec.Struct, frozen=True):
    """A container that did not end well: where, how, and the last thing it said.

    A pod that failed before it had containers has no name of one and no exit code.
    """

    pod: str
    container: str
    reason: str
    exit_code: int | None
    last_line: str = ""


def format_seconds(seconds: float) -> str:
    """``4.2 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def task_counts(job: Job) -> str:
    """Per task what its pods do: ``ps 1 running, worker 1 running 1 succeeded``."""
    parts = []
    for task in job.spec.tasks:
        counts = job.status.task_status_count.get(task.name, {}).get("phase", {})
        shown = " ".join(
            f"{count} {phase.lower()}" for phase, count in sorted(counts.items()) if count
        )
        parts.append(f"{task.name} {shown or f'0/{task.replicas}'}")
    return ", ".join(parts)


def standing(job: Job) -> str:
    """Where a Job is and what it waits for: ``Pending: the queue "q" does not exist``."""
    state = job.status.state
    where = state.phase or "New"
    if where == "Running":
        where += f" ({task_counts(job)})"
    return f"{where}: {state.message}" if state.message else where


def status_line(jobs: Sequence[Job], seconds: float) -> str:
    """The live line: each Job's phase and pods (several Jobs: counts), and the time gone by."""
    elapsed = format_seconds(seconds)
    if len(jobs) == 1:
        job = jobs[0]
        phase = job.status.state.phase or "New"
        return f"{job.metadata.name}: {phase} | {task_counts(job)} | {elapsed}"
    phases: dict[str, int] = {}
    for job in jobs:
        phase = job.status.state.phase or "New"
        phases[phase] = phases.get(phase, 0) + 1
    by_phase = ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items()))
    running = sum(job.status.running for job in jobs)
    return f"{len(jobs)} jobs: {by_phase} | {running} pods running | {elapsed}"


def summary(
    job: Job, seconds: float, ends: Sequence[PodEnd], log_directory: str, until_then: str = ""
) -> list[str]:
    """The lines that end a run: phase, why, what each task's pods came to, where the logs are.

    ``until_then`` is where a Job stood that the run itself has ended, by a time-out for example.
    No pod outlives a run, whatever the status of a Job that was cut short still says of them.
    """
    phase = job.status.state.phase or "not started"
    ended = phase in FINAL_PHASES
    said = phase if ended else f"stopped while {phase},"
    lines = [f"{job.metadata.name}: {said} after {format_seconds(seconds)}"]
    if job.status.state.message:
        lines.append(f"  why: {job.status.state.message}")
    if until_then:
        lines.append(f"  until then: {until_then}")
    for task in job.spec.tasks if ended else ():
        counts = job.status.task_status_count.get(task.name, {}).get("phase", {})
        shown = ", ".join(
            f"{counts[phase]} {phase.lower()}" for phase in _ENDED if counts.get(phase)
        )
        lines.append(f"  {task.name}: {shown or 'no pods left'} (of {task.replicas})")
    for end in ends:
        where = f"{end.pod} ({end.container})" if end.container else end.pod
        said = f": {end.last_line}" if end.last_line else ""
        code = "" if end.exit_code is None else f", exit code {end.exit_code}"
        lines.append(f"  {where} ended with {end.reason}{code}{said}")
    if log_directory:
        lines.append(f"  logs: {log_directory}")
    return lines


class ContainerEnd(msgspec.Struct, frozen=True):
    """A container that ended other than with 0; ``run`` is None if it was never started."""

    container: str
    run: int | None
    reason: str
    exit_code: int
    message: str = ""


def container_ends(pod: Object) -> list[ContainerEnd]:
    """Containers of a pod that ended other than with 0.

    What a container came to in the end counts, and of one that has not ended, how it ended before.
    In a pod that succeeded none ended badly: those that ran beside were stopped.
    """
    status = pod.get("status", {})
    if status.get("phase") == "Succeeded":
        return []
    ends = []
    for container in (
        *status.get("initContainerStatuses", ()),
        *status.get("containerStatuses", ()),
    ):
        for which in ("state", "lastState"):
            terminated = container.get(which, {}).get("terminated")
            if not terminated:
                continue
            if terminated.get("exitCode"):
                ends.append(
                    ContainerEnd(
                        container["name"],
                        run_number(container, previous=which == "lastState"),
                        terminated.get("reason", "Error"),
                        terminated["exitCode"],
                        terminated.get("message", ""),
                    )
                )
            break
    return ends
