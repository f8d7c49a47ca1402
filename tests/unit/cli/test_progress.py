"""The status line and the summary of a run."""

from vcjob.api.types import Job
from vcjob.cli.progress import (
    ContainerEnd,
    PodEnd,
    container_ends,
    format_seconds,
    standing,
    status_line,
    summary,
)


def job(name: str = "mnist", phase: str = "Running", **status: object) -> Job:
    return Job.of(
        {
            "metadata": {"name": name},
            "spec": {"tasks": [{"name": "ps", "replicas": 1}, {"name": "worker", "replicas": 2}]},
            "status": {
                "state": {"phase": phase},
                "taskStatusCount": {"worker": {"phase": {"Running": 1, "Succeeded": 1}}},
                **status,
            },
        }
    )


def test_the_status_line_of_one_job_tells_phase_tasks_and_time() -> None:
    assert status_line([job()], 12.34) == (
        "mnist: Running | ps 0/1, worker 1 running 1 succeeded | 12.3 s"
    )


def test_the_status_line_of_several_jobs_counts_phases() -> None:
    jobs = [job("a", running=2), job("b", "Completed"), job("c", running=1)]
    assert status_line(jobs, 61) == "3 jobs: 1 Completed, 2 Running | 3 pods running | 1 min 1 s"


def test_a_job_without_status_is_shown_as_new() -> None:
    assert status_line([Job.of({"metadata": {"name": "x"}})], 0).startswith("x: New")


def test_the_summary_tells_why_and_which_container_failed() -> None:
    failed = job(phase="Failed", state={"phase": "Failed", "message": "too few pods succeeded"})
    lines = summary(failed, 3, [PodEnd("worker-1", "main", "Error", 7, "no such file")], "logs/x")
    assert lines == [
        "mnist: Failed after 3.0 s",
        "  why: too few pods succeeded",
        "  ps: no pods left (of 1)",
        "  worker: 1 succeeded (of 2)",
        "  worker-1 (main) ended with Error, exit code 7: no such file",
        "  logs: logs/x",
    ]


def test_the_summary_of_a_pod_that_never_had_containers_has_no_exit_code() -> None:
    ends = [PodEnd("ps-0", "", "CreatePodError", None, "No space left on device")]
    assert (
        "  ps-0 ended with CreatePodError: No space left on device"
        in summary(job(phase="Failed"), 3, ends, "")
    )  # fmt: skip


def test_the_summary_of_a_job_that_was_stopped_counts_no_pods() -> None:
    assert summary(job(phase="Running"), 3, [], "logs/x") == [
        "mnist: stopped while Running, after 3.0 s",
        "  logs: logs/x",
    ]


def test_the_summary_of_a_job_that_the_run_ended_says_what_it_waited_for() -> None:
    waiting = job(phase="Pending", state={"phase": "Pending", "message": "no such queue"})
    assert standing(waiting) == "Pending: no such queue"
    assert standing(job()) == "Running (ps 0/1, worker 1 running 1 succeeded)"
    ended = job(phase="Terminated", state={"phase": "Terminated", "message": "a Command"})
    assert summary(ended, 3, [], "", standing(waiting))[1:3] == [
        "  why: a Command",
        "  until then: Pending: no such queue",
    ]


def test_durations_are_short() -> None:
    assert [format_seconds(s) for s in (0.04, 59.9, 200, 7500)] == [
        "0.0 s", "59.9 s", "3 min 20 s", "2 h 5 min",
    ]  # fmt: skip


def test_container_ends_names_every_container_that_ended_badly_once() -> None:
    terminated = {"terminated": {"exitCode": 3, "reason": "Error"}}
    pod = {
        "status": {
            "initContainerStatuses": [{"name": "init", "state": {"terminated": {"exitCode": 0}}}],
            "containerStatuses": [
                {"name": "main", "state": terminated, "lastState": terminated,
                 "containerID": "vcjob://uid/main/2"},
                {"name": "restarted", "state": {"running": {}}, "lastState": terminated,
                 "containerID": "vcjob://uid/restarted/1"},
                {"name": "waits", "state": {"waiting": {}}, "lastState": terminated,
                 "containerID": "vcjob://uid/waits/1"},
                {"name": "never", "state": terminated},
                {"name": "late", "state": {"terminated": {"exitCode": 0}}, "lastState": terminated},
            ],
        }
    }  # fmt: skip
    assert container_ends(pod) == [
        ContainerEnd("main", 2, "Error", 3),
        ContainerEnd("restarted", 0, "Error", 3),
        ContainerEnd("waits", 1, "Error", 3),
        ContainerEnd("never", None, "Error", 3),
    ]


def test_no_container_of_a_pod_that_succeeded_has_ended_badly() -> None:
    stopped = {"terminated": {"exitCode": 137, "reason": "Error"}}
    beside = {"initContainerStatuses": [{"name": "beside", "state": stopped}]}
    assert container_ends({"status": {"phase": "Succeeded", **beside}}) == []
    assert container_ends({"status": {"phase": "Failed", **beside}}) != []
