"""What Prometheus reads of an operator."""

from collections.abc import Callable
from typing import Any

import pytest

from vcjob.api.kinds import JOB, POD
from vcjob.api.types import Job
from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.observed import recount
from vcjob.core.times import timestamp
from vcjob.kubernetes.operator_metrics import OperatorMetrics

CREATED = 1_800_000_000


class Clock:
    now = float(CREATED)

    def __call__(self) -> float:
        return self.now


def job(name: str = "mnist", phase: str = "Pending", replicas: int = 2, **status: Any) -> Job:
    return Job.of(
        {
            "metadata": {"name": name, "namespace": "ml", "uid": f"uid-{name}",
                         "creationTimestamp": timestamp(CREATED)},
            "spec": {"queue": "q", "tasks": [{"name": "worker", "replicas": replicas}]},
            "status": {"state": {"phase": phase}, **status},
        }
    )  # fmt: skip


def pods(*phases: PodPhase) -> Any:
    return recount(
        PodFacts(f"mnist-worker-{index}", f"uid-{index}", "worker", index, 0, 0, phase)
        for index, phase in enumerate(phases)
    )


def value(metrics: OperatorMetrics, sample: str) -> float | None:
    lines = metrics.text().decode().splitlines()
    return next((float(line.split()[-1]) for line in lines if line.startswith(f"{sample} ")), None)


def sums(metrics: OperatorMetrics) -> tuple[float | None, ...]:
    names = ("vcjob_job_pods_created_seconds", "vcjob_job_pods_running_seconds")
    return tuple(value(metrics, f"{name}_{what}") for name in names for what in ("count", "sum"))


PENDING, RUNNING = PodPhase.PENDING, PodPhase.RUNNING


def test_the_start_of_a_job_is_timed_once() -> None:
    clock = Clock()
    metrics = OperatorMetrics(clock)
    for seconds, phase, observed in (
        (0, "", pods()),
        (1, "Pending", pods(PENDING)),
        (2, "Pending", pods(PENDING, PENDING)),
        (3, "Running", pods(RUNNING, PENDING)),
        (5, "Running", pods(RUNNING, PodPhase.SUCCEEDED)),
        (9, "Running", pods(RUNNING)),
        (11, "Running", pods(RUNNING, RUNNING)),
    ):
        clock.now = CREATED + seconds
        metrics.note_job(job(phase=phase), observed)
    assert sums(metrics) == (1, 2, 1, 5)


@pytest.mark.parametrize(
    "seen",
    [
        [(job(), pods(PENDING, PENDING)), (job(), pods(RUNNING, RUNNING))],
        [(job(version=1), pods()), (job(version=1), pods(RUNNING, RUNNING))],
        [(job(retryCount=1), pods()), (job(retryCount=1), pods(RUNNING, RUNNING))],
        [(job(replicas=0), pods())],
        [(job(), pods()), (job(phase="Failed"), pods()), (job(phase="Failed"), pods(RUNNING))],
    ],
    ids=["had its pods when we came", "restarted", "tried again", "without pods", "ended before"],
)
def test_what_is_no_first_start_is_not_timed(seen: list[tuple[Job, Any]]) -> None:
    metrics = OperatorMetrics(Clock())
    for one, observed in seen:
        metrics.note_job(one, observed)
    assert sums(metrics) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    "forget",
    [lambda metrics: metrics.forget_job("uid-mnist"), OperatorMetrics.forget_jobs],
    ids=["one", "all, as another leads"],
)
def test_a_job_that_went_is_forgotten(forget: Callable[[OperatorMetrics], None]) -> None:
    metrics = OperatorMetrics(Clock())
    metrics.note_job(job(), pods())
    forget(metrics)
    metrics.note_job(job(), pods(RUNNING, RUNNING))
    assert sums(metrics) == (0, 0, 0, 0)


def test_jobs_are_counted_by_phase_and_those_at_their_end_under_volcano_s_names_too() -> None:
    metrics = OperatorMetrics(Clock())
    there = [job("a", "Running"), job("b", "Completed"), job("c", "Failed"), job("d", "")]
    metrics.watch_jobs(lambda: there, lambda: 7, lambda: 2.5)
    assert value(metrics, 'vcjob_jobs{phase="Running"}') == 1
    assert value(metrics, 'vcjob_jobs{phase="Pending"}') == 1
    assert value(metrics, "vcjob_queue_depth") == 7
    assert value(metrics, "vcjob_queue_longest_wait_seconds") == 2.5
    labels = '{job_name="ml/%s",queue_name="q"}'
    assert value(metrics, f"volcano_job_completed_phase_count{labels % 'b'}") == 1
    assert value(metrics, f"volcano_job_failed_phase_count{labels % 'c'}") == 1
    there.clear()
    assert "ml/" not in metrics.text().decode()


def test_podgroups_are_counted_by_queue_and_phase_under_volcano_s_names() -> None:
    metrics = OperatorMetrics(Clock())
    metrics.watch_queues(lambda: [("q", {"Running": 2, "Pending": 1}), ("empty", {})])
    for phase, queue, count in (("running", "q", 2), ("pending", "q", 1), ("running", "empty", 0)):
        name = f'volcano_queue_pod_group_{phase}_count{{queue_name="{queue}"}}'
        assert value(metrics, name) == count


def test_calls_are_counted_by_verb_and_code_and_watches_not_timed() -> None:
    metrics = OperatorMetrics(Clock())
    metrics.count_call("create", POD, 201, 0.25)
    metrics.count_call("create", POD, 409, 0.25)
    metrics.count_call("watch", JOB, 200, 300.0)
    metrics.count_call("get", None, 0, 1.0)
    assert value(metrics, 'vcjob_api_calls_total{code="409",resource="pods",verb="create"}') == 1
    assert value(metrics, 'vcjob_api_calls_total{code="none",resource="none",verb="get"}') == 1
    assert value(metrics, 'vcjob_api_call_seconds_sum{verb="create"}') == 0.5
    assert 'vcjob_api_call_seconds_count{verb="watch"}' not in metrics.text().decode()
