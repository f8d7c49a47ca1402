"""``vcjob wait``: until Jobs have ended, are in a phase, meet a condition, or are gone."""

import asyncio
from collections.abc import Iterable, Sequence

import click
import msgspec

from vcjob.api.kinds import JOB
from vcjob.api.problems import printable
from vcjob.api.suggestions import suggest
from vcjob.api.types import Job, Object
from vcjob.cli.delete import until_gone
from vcjob.cli.durations import DurationType
from vcjob.cli.exit_codes import ExitCode, of_phases, worst
from vcjob.cli.following import changes
from vcjob.cli.progress import FINAL_PHASES
from vcjob.cli.selection import JobNameType, find_job
from vcjob.cli.target import Target, on_target
from vcjob.controller.cluster import EventType
from vcjob.core.actions import Phase

_PHASES = tuple(phase.value for phase in Phase if phase.value)


class _Wanted(msgspec.Struct, frozen=True):
    """What is waited for: one of ``phases`` (none: the end), or that the Job is ``gone``.

    With ``ever`` phases that have passed count too, as Kubernetes' conditions do.
    """

    phases: tuple[str, ...] = ()
    ever: bool = False
    gone: bool = False

    def is_met(self, job: Job) -> bool:
        """Whether it has come."""
        past = {str(one.get("status", "")) for one in job.status.conditions} if self.ever else set()
        return not {job.status.state.phase, *past}.isdisjoint(self.phases)


class _WantedType(click.ParamType[_Wanted]):
    name = "phase=PHASE[,PHASE]|condition=PHASE|delete|end"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> _Wanted:
        if value == "end":
            return _Wanted()
        if value == "delete":
            return _Wanted(gone=True)
        what, _, listed = value.partition("=")
        if what not in ("phase", "condition") or not listed:
            self.fail(f"{value!r} is not phase=PHASE, condition=PHASE, delete or end", param, ctx)
        by_lower_case = {phase.lower(): phase for phase in _PHASES}
        phases = []
        for word in listed.split(","):
            if word.lower() not in by_lower_case:
                hint = suggest(word, _PHASES)
                self.fail(f"{word!r} is no phase of a Job; {hint}", param, ctx)
            phases.append(by_lower_case[word.lower()])
        return _Wanted(tuple(phases), ever=what == "condition")


@click.command(
    epilog="The exit code is that of vcjob run: 0 Completed, 1 Failed, 5 Terminated, 6 Aborted (of "
    "several Jobs the worst). With --for it is 0 once that has come; when a Job ends otherwise, "
    "the code of its end; 1 when the time is over. condition=PHASE also counts phases that have "
    "passed."
)
@click.argument("jobs", nargs=-1, required=True, type=JobNameType(), metavar="JOB...")
@click.option("--for", "wanted", type=_WantedType(), default="end", show_default=True,
              metavar="WHAT",
              help="phase=PHASE[,PHASE...], condition=PHASE, delete, or end.")  # fmt: skip
@click.option("--timeout", type=DurationType(), help="Wait no longer than this.")
@on_target
async def wait(
    target: Target, jobs: tuple[str, ...], wanted: _Wanted, timeout: float | None
) -> int:
    """Wait until every JOB has ended, or what --for says has come."""
    found = [await find_job(target, name) for name in jobs]
    waiting = {job["metadata"]["uid"]: job["metadata"]["name"] for job in found}
    try:
        async with asyncio.timeout(timeout):
            if wanted.gone:
                await until_gone(target, found)
                return ExitCode.COMPLETED
            return await _until(target, found, wanted, waiting)
    except TimeoutError:
        return _time_is_over(waiting.values())


async def wait_for_end(
    target: Target, jobs: Sequence[Object], timeout: float | None = None
) -> ExitCode:
    """Wait until Jobs, of any namespaces, have ended, or ``timeout`` seconds; the exit code."""
    waiting: dict[str, dict[str, str]] = {}
    for job in jobs:
        metadata = job["metadata"]
        waiting.setdefault(metadata["namespace"], {})[metadata["uid"]] = metadata["name"]
    try:
        async with asyncio.timeout(timeout), asyncio.TaskGroup() as tasks:
            ends = [
                tasks.create_task(
                    _until(
                        msgspec.structs.replace(target, namespace=namespace),
                        [job for job in jobs if job["metadata"]["uid"] in names],
                        _Wanted(),
                        names,
                    )
                )
                for namespace, names in waiting.items()
            ]
    except TimeoutError:
        return _time_is_over([name for names in waiting.values() for name in names.values()])
    return worst(end.result() for end in ends)


def _time_is_over(waiting: Iterable[str]) -> ExitCode:
    left = ", ".join(sorted(waiting))
    click.echo(f"vcjob: the time is over; still waited for: {left}", err=True)
    return ExitCode.FAILED


async def _until(
    target: Target, jobs: list[Object], wanted: _Wanted, waiting: dict[str, str]
) -> ExitCode:
    """Wait for Jobs; who is done leaves ``waiting``."""
    ends: list[str] = []
    known = {job["metadata"]["uid"]: job for job in jobs}
    async for kind, obj in changes(target.cluster, JOB, target.namespace, known=known):
        uid = obj["metadata"]["uid"]
        if uid not in waiting:
            continue
        end = _end(obj, wanted, gone=kind is EventType.DELETED)
        if end is None:
            continue
        name = waiting.pop(uid)
        ends.append(end[0])
        click.echo(f"job {name} {end[1]}", err=end[0] not in ("", "Completed"))
        if not waiting:
            break
    return of_phases(end or "Completed" for end in ends)


def _end(obj: Object, wanted: _Wanted, *, gone: bool) -> tuple[str, str] | None:
    """The phase that counts ("" for what was wanted) and what is told; None to wait on."""
    if gone:
        return "deleted", "was deleted"
    job = Job.of(obj)
    phase = job.status.state.phase
    why = f": {printable(job.status.state.message)}" if job.status.state.message else ""
    if wanted.is_met(job):
        return "", f"is {phase}{why}"
    if phase in FINAL_PHASES:
        return phase, f"is {phase}{why}"
    return None
