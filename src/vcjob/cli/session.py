"""One run from its first object to its summary: the engine, the output, the exit code."""

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from vcjob.api.kinds import POD
from vcjob.api.names import pod_name
from vcjob.api.types import Job, Object, all_containers
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.follow import Follower
from vcjob.cli.manifests import Loaded, LoadedJob
from vcjob.cli.podtext import column_width, decode, short_pod_name
from vcjob.cli.preparation import cleared, obstacles
from vcjob.cli.progress import PodEnd, container_ends, summary
from vcjob.cli.references import left_claims, missing_references
from vcjob.cli.screen import Screen, open_screen
from vcjob.local.engine import LocalEngine
from vcjob.plugins.registry import installed_plugins

_MOST_ENDS_SHOWN = 10


class Settings(msgspec.Struct, frozen=True):
    """How a run is followed: see the options of ``vcjob run``. ``timeout`` is in seconds."""

    all_events: bool = False
    timeout: float | None = None
    strict: bool = False


def run_session(engine: LocalEngine, loaded: Loaded, settings: Settings) -> ExitCode:
    """Run the Jobs on a prepared engine, and end it; returns the exit code."""
    claims = Path(engine.volumes.claims)
    missing = missing_references(loaded, installed_plugins(third_party=True), claims)
    problems = [*missing, *obstacles(loaded, engine.view)]
    if not cleared(problems, strict=settings.strict):
        engine.abandon()
        return ExitCode.MANIFEST_REFUSED
    jobs = [_named(job) for job in loaded.jobs]
    others = [*left_claims(loaded, claims), *(other.object for other in loaded.others)]
    labels = _labels([Job.of(job) for job in jobs])
    with open_screen(column_width(labels.values())) as screen:
        engine.on_line = _Output(screen, labels, _several_containers(jobs))
        engine.on_problem = screen.note
        code = asyncio.run(_run(engine, [*others, *jobs], screen, settings))
        if screen.broken and code == ExitCode.COMPLETED:
            screen.note(screen.broken)
            return ExitCode.FAILED
        return code


async def _run(
    engine: LocalEngine, objects: list[Object], screen: Screen, settings: Settings
) -> ExitCode:
    async with engine:
        created = await engine.submit(objects)
        follower = Follower(engine.cluster, screen, all_events=settings.all_events)
        ending = await follower.follow(created, settings.timeout, engine.lost)
        pods = (await engine.cluster.list(POD)).items
        for job in ending.jobs:
            ends = list(_ends(job, pods, engine))
            logs = _shortened(engine.run.logs)
            until_then = ending.until_then.get(job.metadata.uid, "")
            screen.result(summary(job, ending.seconds, ends, logs, until_then))
    return ending.code


def _named(job: LoadedJob) -> Object:
    """The Job with a name: ``generateName`` is completed here, so that labels can be made."""
    metadata = dict(job.defaulted["metadata"])
    if not metadata.get("name"):
        metadata["name"] = metadata["generateName"] + secrets.token_hex(3)[:5]
    metadata.setdefault("namespace", "default")
    return {**job.defaulted, "metadata": metadata}


def _labels(jobs: Sequence[Job]) -> dict[tuple[str, str], str]:
    """What each pod is called in the output, by namespace and name."""
    labels = {}
    for job in jobs:
        for task in job.spec.tasks:
            for index in range(task.replicas):
                pod = pod_name(job.metadata.name, task.name, index)
                short = short_pod_name(job.metadata.name, pod)
                shown = short if len(jobs) == 1 else f"{job.metadata.name}/{short}"
                labels[job.metadata.namespace, pod] = shown
    return labels


def _several_containers(jobs: Sequence[Object]) -> set[tuple[str, str]]:
    """Pods (namespace, name) with several containers, whose output names the container too."""
    return {
        (job["metadata"]["namespace"], pod_name(job["metadata"]["name"], task["name"], index))
        for job in jobs
        for task in job["spec"]["tasks"]
        if len(all_containers(task["template"]["spec"])) > 1
        for index in range(task.get("replicas", 0))
    }


class _Output:
    """Shows lines of pods under their labels; a container is named where there are several."""

    def __init__(
        self,
        screen: Screen,
        labels: dict[tuple[str, str], str],
        several: set[tuple[str, str]],
    ) -> None:
        self._screen = screen
        self._labels = labels
        self._several = several

    def __call__(self, namespace: str, pod: str, container: str, line: bytes) -> None:
        label = self._labels.get((namespace, pod), pod)
        if (namespace, pod) in self._several:
            label = f"{label}/{container}"
        self._screen.pod_line(label, line)


def _shortened(path: Path) -> str:
    """A path below the home directory as shells take it."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _ends(job: Job, pods: Sequence[Object], engine: LocalEngine) -> Iterator[PodEnd]:
    """Containers of a Job's pods that ended badly, with the last thing each said.

    Of a pod that failed without them, why.
    """
    shown = 0
    for pod in pods:
        metadata = pod["metadata"]
        owners = metadata.get("ownerReferences") or ()
        if not any(owner["uid"] == job.metadata.uid for owner in owners):
            continue
        short = short_pod_name(job.metadata.name, metadata["name"])
        ends = container_ends(pod)
        status = pod.get("status", {})
        if status.get("phase") == "Failed" and status.get("reason") and not ends:
            if shown == _MOST_ENDS_SHOWN:
                return
            shown += 1
            yield PodEnd(short, "", status["reason"], None, status.get("message", ""))
        for end in ends:
            if shown == _MOST_ENDS_SHOWN:
                return
            shown += 1
            named = end.container if len(all_containers(pod["spec"])) > 1 else ""
            said = b"" if end.run is None else engine.last_line(pod, end.container, end.run)
            yield PodEnd(short, named, end.reason, end.exit_code, decode(said) or end.message)
