"""What an operator measures of itself, in the form that Prometheus reads.

Names begin with ``vcjob_``; ``volcano_job_completed_phase_count``,
``volcano_job_failed_phase_count`` and ``volcano_queue_pod_group_…_count`` are Volcano's, so that
dashboards go on. Jobs are counted when somebody asks, from what the controller knows.
"""

import time
from collections import Counter as Count
from collections.abc import Callable, Iterable, Mapping

import msgspec
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from vcjob import __version__
from vcjob.api.kinds import Kind
from vcjob.api.types import Job
from vcjob.core.actions import FINAL, Phase
from vcjob.core.facts import PodPhase
from vcjob.core.observed import Observed
from vcjob.core.queue_states import COUNTERS
from vcjob.core.times import seconds_of

_PASS_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60)
_CALL_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_START_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)


class OperatorMetrics:
    """All metrics of one operator.

    Args:
        clock: seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.registry = registry = CollectorRegistry()
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no types
        self._starting: dict[str, _Start] = {}
        self.leads = Gauge("vcjob_leader", "1 while this replica leads, else 0.", registry=registry)
        self.passes = Histogram(
            "vcjob_reconcile_seconds", "How long looks at one Job took.",
            buckets=_PASS_SECONDS, registry=registry,
        )  # fmt: skip
        self._calls = Counter(
            "vcjob_api_calls", "Requests to the API server, by verb, resource and code.",
            ("verb", "resource", "code"), registry=registry,
        )  # fmt: skip
        self._call_seconds = Histogram(
            "vcjob_api_call_seconds", "How long requests to the API server took, by verb.",
            ("verb",), buckets=_CALL_SECONDS, registry=registry,
        )  # fmt: skip
        self._created = Histogram(
            "vcjob_job_pods_created_seconds",
            "From a Job's creation until all its pods were created, the first time.",
            buckets=_START_SECONDS, registry=registry,
        )  # fmt: skip
        self._running = Histogram(
            "vcjob_job_pods_running_seconds",
            "From a Job's creation until all its pods had started, the first time.",
            buckets=_START_SECONDS, registry=registry,
        )  # fmt: skip
        info = Gauge("vcjob_build_info", "1, with the version.", ("version",), registry=registry)
        info.labels(__version__).set(1)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)

    def count_call(self, verb: str, kind: Kind | None, code: int, seconds: float) -> None:
        """A request to the API server was answered (``code`` 0: it was not)."""
        resource = kind.plural if kind else "none"
        self._calls.labels(verb, resource, str(code) if code else "none").inc()
        if verb != "watch":
            self._call_seconds.labels(verb).observe(seconds)

    def note_job(self, job: Job, observed: Observed) -> None:
        """A Job was looked at: its start is timed while it has not all its pods yet."""
        uid = job.metadata.uid
        wanted = sum(task.replicas for task in job.spec.tasks)
        status = job.status
        again = status.version > 0 or status.retry_count > 0
        start = self._starting.get(uid)
        if not wanted or again or status.state.phase in FINAL:
            self._starting.pop(uid, None)
            return
        there = len(observed.pods)
        if start is None:
            if there >= wanted or _has_run(job):  # it had them before
                return
            start = self._starting[uid] = _Start(seconds_of(job.metadata.creation_timestamp))
        if start.created is None:
            self._starting.pop(uid)
            return
        seconds = max(self._clock() - start.created, 0.0)
        if there >= wanted and not start.all_created:
            start.all_created = True
            self._created.observe(seconds)
        if there >= wanted and not observed.counts()[PodPhase.PENDING]:
            self._running.observe(seconds)
            del self._starting[uid]

    def forget_job(self, uid: str) -> None:
        """A Job is gone."""
        self._starting.pop(uid, None)

    def forget_jobs(self) -> None:
        """Jobs are no longer looked at here: which of them go nobody will tell."""
        self._starting.clear()

    def watch_jobs(
        self,
        jobs: "Callable[[], Iterable[Job]]",
        queue: Callable[[], int],
        wait: Callable[[], float],
    ) -> None:
        """Count ``jobs`` and the keys in the work queue, and show how long (s) the oldest of those
        has waited, whenever somebody asks."""
        self.registry.register(_Jobs(jobs, queue, wait))

    def watch_queues(self, counts: "Callable[[], Iterable[tuple[str, Mapping[str, int]]]]") -> None:
        """Show PodGroups by Queue and phase whenever somebody asks."""
        self.registry.register(_Queues(counts))

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)


def _has_run(job: Job) -> bool:
    past = {condition.get("status") for condition in job.status.conditions}
    return Phase.RUNNING in {job.status.state.phase, *past}


class _Start(msgspec.Struct):
    created: float | None
    all_created: bool = False


class _Jobs(Collector):
    def __init__(
        self,
        jobs: "Callable[[], Iterable[Job]]",
        queue: Callable[[], int],
        wait: Callable[[], float],
    ) -> None:
        self._jobs = jobs
        self._queue = queue
        self._wait = wait

    def collect(self) -> Iterable[Metric]:
        phases: Count[str] = Count()
        # Volcano counts how often a Job reached the phase: once, as its last phase stays.
        ends = {
            "Completed": _by_job("completed"),
            "Failed": _by_job("failed"),
        }
        for job in self._jobs():
            phase = job.status.state.phase or "Pending"
            phases[phase] += 1
            if phase in ends:
                name = f"{job.metadata.namespace}/{job.metadata.name}"
                ends[phase].add_sample(
                    ends[phase].name, {"job_name": name, "queue_name": job.spec.queue}, 1
                )
        shown = GaugeMetricFamily("vcjob_jobs", "Jobs there are, by phase.", labels=("phase",))
        for phase, count in sorted(phases.items()):
            shown.add_metric((phase,), count)
        yield shown
        yield GaugeMetricFamily(
            "vcjob_queue_depth", "Jobs that wait to be looked at, or are.", self._queue()
        )
        yield GaugeMetricFamily(
            "vcjob_queue_longest_wait_seconds",
            "How long the Job has waited that waits longest to be looked at.",
            self._wait(),
        )
        yield from ends.values()


class _Queues(Collector):
    def __init__(self, counts: "Callable[[], Iterable[tuple[str, Mapping[str, int]]]]") -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        counts = sorted(self._counts(), key=lambda one: one[0])
        for counter in COUNTERS:
            phase = counter.capitalize()
            shown = GaugeMetricFamily(
                f"volcano_queue_pod_group_{counter}_count",
                f"PodGroups in phase {phase}, by queue.",
                labels=("queue_name",),
            )
            for name, phases in counts:
                shown.add_metric((name,), phases.get(phase, 0))
            yield shown


def _by_job(end: str) -> Metric:
    # Of an unknown type, as the library adds _total to the names of counters.
    return Metric(f"volcano_job_{end}_phase_count", f"Jobs in phase {end.title()}.", "unknown")
