"""``vcjob run`` from outside: exit codes and what stands beside them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import Ended, job, run, start, task, write

SUCCEEDS = ("sh", "-c", "exit 0")
FAILS = ("sh", "-c", "echo broken; exit 3")
# Says that it runs, and ends well when asked to end; `wait` lets the shell hear the signal.
OBEYS = ("sh", "-c", "trap 'echo bye; exit 0' TERM; echo ready; sleep 1000 & wait")
STUBBORN = ("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1000; done")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "FILE"),
        (("missing.yaml",), "missing.yaml"),
        (("job.yaml", "-v", "here"), "SRC:DST"),
        (("job.yaml", "-v", ".:relative"), "absolute"),
        (("job.yaml", "-v", "not-here:/x"), "not-here"),
        (("job.yaml", "-v", ".:/x:rx"), "SRC:DST"),
        (("job.yaml", "-v", ".:/"), "choose another place"),
        (("job.yaml", "-v", ".:/proc/x"), "choose another place"),
        (("job.yaml", "-v", ".:/dev"), "choose another place"),
        (("job.yaml", "-v", ".:/.vcjob/bin"), "choose another place"),
        (("job.yaml", "-v", ".:/etc/hosts"), "'/etc/hosts' is a file in every pod"),
        (("job.yaml", "-v", "job.yaml:/usr/bin"), "'/usr/bin' is a directory in every pod"),
        (("-", "job.yaml", "-"), "once only"),
        (("https://example.com/job.yaml",), "curl -fsSL https://example.com/job.yaml |"),
        (("job.yaml", "-v", ".:/x/../y"), "must not contain '..'"),
        (("job.yaml", "--scale", "worker"), "--scale"),
        (("job.yaml", "--scale", "worker=-1"), "--scale"),
        (("job.yaml", "--scale", "nobody=1"), "nobody"),
        (("job.yaml", "--timeout", "soon"), "soon"),
        (("job.yaml", "--timeout", "0"), "--timeout 0"),
        (("job.yaml", "--no-such-option"), "--no-such-option"),
    ],
)
def test_wrong_usage_is_2_and_says_what_is_wrong(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    write(tmp_path, job("demo", task("worker", SUCCEEDS)))
    ended = run(tmp_path, "run", *arguments)
    assert ended.code == 2, ended
    assert said in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("command", ["run", "submit"])
def test_help_says_which_scaling_of_a_task_counts(tmp_path: Path, command: str) -> None:
    told = " ".join(run(tmp_path, command, "--help").out.split())
    assert "the last one counts" in told


def test_a_file_without_a_job_is_wrong_usage(tmp_path: Path) -> None:
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "q"},
        "spec": {"weight": 1},
    }
    ended = run(tmp_path, "run", write(tmp_path, queue))
    assert ended.code == 2, ended
    assert "no Job" in ended.err


def test_a_refused_manifest_is_3_and_starts_nothing(tmp_path: Path) -> None:
    ended = run(tmp_path, "run", write(tmp_path, job("demo", task("Worker_1", SUCCEEDS))))
    assert ended.code == 3, ended
    assert "Worker_1" in ended.err
    assert "job.yaml" in ended.err
    assert ended.err.endswith("vcjob: refused; nothing was started\n")
    assert ended.out == ""


@pytest.mark.local
def test_a_job_whose_queue_can_never_come_is_3_instead_of_waiting_for_ever(tmp_path: Path) -> None:
    waiting = job("demo", task("worker", SUCCEEDS))
    waiting["spec"]["queue"] = "elsewhere"
    ended = run(tmp_path, "run", "--timeout", "30s", write(tmp_path, waiting))
    assert ended.code == 3, ended
    assert 'there is no queue "elsewhere"' in ended.err
    assert "name a file with this Queue too" in ended.err


@pytest.mark.local
def test_a_program_that_pods_do_not_see_is_3_and_named_with_a_cure(tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    ended = run(tmp_path, "run", write(tmp_path, job("demo", task("worker", [str(script)]))))
    assert ended.code == 3, ended
    assert str(script) in ended.err
    assert "-v" in ended.err
    assert ended.out == ""


def test_a_state_directory_that_cannot_be_used_is_4_and_told_with_the_cure(
    tmp_path: Path,
) -> None:
    (tmp_path / "state").write_text("a file where the directory should be")
    ended = run(tmp_path, "run", write(tmp_path, job("demo", task("worker", SUCCEEDS))))
    assert ended.code == 4, ended
    assert "XDG_STATE_HOME" in ended.err


@pytest.mark.local
def test_a_directory_without_python_is_wrong_usage(tmp_path: Path) -> None:
    manifest = write(tmp_path, job("demo", task("worker", SUCCEEDS)))
    ended = run(tmp_path, "run", "--python", "/etc", manifest)
    assert ended.code == 2, ended
    assert "/etc/bin/python is no Python that runs here" in ended.err


@pytest.mark.local
def test_an_empty_program_is_refused_where_it_stands(tmp_path: Path) -> None:
    ended = run(tmp_path, "run", write(tmp_path, job("demo", task("worker", [""]))))
    assert ended.code == 3, ended
    assert "spec.tasks[0].template.spec.containers[0].command[0]" in ended.err


@pytest.mark.parametrize(
    "arguments", [("render",), ("render", "-o", "json"), ("validate",), ("validate", "-o", "json")]
)
def test_a_full_disk_behind_the_output_is_told_in_a_sentence(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    manifest = write(tmp_path, job("demo", task("worker", SUCCEEDS)))
    with Path("/dev/full").open("wb") as full:
        ended = Ended(start(tmp_path, *arguments, manifest, stdout=full))
    assert ended.code == 1, ended
    assert ended.err.endswith("vcjob: output cannot be written: No space left on device\n")
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("render",), ("validate",), pytest.param(("run",), marks=pytest.mark.local)],
)
def test_streams_that_are_closed_are_nobodys(
    tmp_path: Path, arguments: tuple[str, ...], closed: str
) -> None:
    manifest = write(tmp_path, job("demo", task("worker", SUCCEEDS)))
    ended = Ended(start(tmp_path, *arguments, manifest, redirection=closed))
    assert ended.code == 0, ended
    assert "Traceback" not in ended.err


@pytest.mark.local
def test_output_that_cannot_be_written_is_not_a_success(tmp_path: Path) -> None:
    manifest = write(tmp_path, job("demo", task("worker", SUCCEEDS)))
    with Path("/dev/full").open("wb") as full:
        process = start(tmp_path, "run", manifest, stdout=full)
        ended = Ended(process)
    assert ended.code == 1, ended
    assert "output cannot be written: No space left on device" in ended.err


@pytest.mark.local
def test_completed_is_0(tmp_path: Path) -> None:
    manifest = write(tmp_path, job("demo", task("worker", SUCCEEDS)))
    ended = run(tmp_path, "run", "--events", manifest)
    assert ended.code == 0, ended
    assert "demo: Completed" in ended.out
    assert "worker: 1 succeeded (of 1)" in ended.out
    assert "JobCompleted on Job demo" in ended.err


@pytest.mark.local
def test_failed_is_1_and_the_summary_names_the_pod_its_exit_code_and_last_words(
    tmp_path: Path,
) -> None:
    ended = run(tmp_path, "run", write(tmp_path, job("demo", task("worker", FAILS))))
    assert ended.code == 1, ended
    assert "demo: Failed" in ended.out
    assert "  worker-0 ended with Error, exit code 3: broken\n" in ended.out
    assert "JobFailed" not in ended.err  # said with the phase


@pytest.mark.local
def test_the_summary_says_why_a_container_could_not_start(tmp_path: Path) -> None:
    rooted = task("worker", SUCCEEDS)
    rooted["template"]["spec"]["securityContext"] = {"runAsNonRoot": True}
    ended = run(tmp_path, "run", write(tmp_path, job("demo", rooted)))
    assert ended.code == 1, ended
    assert "exit code 128" in ended.out
    assert "has runAsNonRoot and would run as root: set runAsUser" in ended.out


@pytest.mark.local
def test_a_host_path_that_is_not_allowed_is_refused_before_anything_starts(tmp_path: Path) -> None:
    needy = task("worker", SUCCEEDS)
    needy["template"]["spec"]["volumes"] = [{"name": "host", "hostPath": {"path": "/etc"}}]
    ended = run(tmp_path, "run", write(tmp_path, job("demo", needy)))
    assert ended.code == 3, ended
    assert "hostPath /etc is not shown to pods: allow it with --allow-host-path /etc" in ended.err


@pytest.mark.local
def test_a_time_out_terminates_with_5(tmp_path: Path) -> None:
    manifest = write(tmp_path, job("demo", task("worker", OBEYS)))
    ended = run(tmp_path, "run", "--timeout", "2s", manifest)
    assert ended.code == 5, ended
    assert "demo: Terminated" in ended.out
    assert "time-out" in ended.err


@pytest.mark.local
def test_a_job_without_pods_is_told_to_be_endless(tmp_path: Path) -> None:
    manifest = write(tmp_path, job("demo", task("worker", SUCCEEDS, replicas=0)))
    ended = run(tmp_path, "run", "--timeout", "1s", manifest)
    assert ended.code == 5, ended
    assert "no task has replicas" in ended.err
    assert "  until then: Running (worker 0/0): no task has replicas" in ended.out


# Starts as the installed program does, and tells itself to end while a module is imported.
INTERRUPTED_AT_IMPORT = """
import signal, sys
from vcjob.cli.entry import vcjob
number, module = signal.Signals[sys.argv.pop()], sys.argv.pop()
class Interrupter:
    def find_spec(self, name, path, target=None):
        if name == module:
            signal.raise_signal(number)
sys.meta_path.insert(0, Interrupter())
vcjob()
"""


@pytest.mark.parametrize("module", ["click", "vcjob.cli.main", "vcjob.cli.validate"])
def test_an_interrupt_at_the_very_start_shows_no_traceback(module: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT_IMPORT, "validate", module, "SIGINT"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert ended.returncode in {130, -signal.SIGINT}  # shells report both as 130
    assert (ended.stdout, ended.stderr.strip()) == (b"", b"")


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("command", ["operator", "webhook"])
@pytest.mark.parametrize("module", ["click", "vcjob.kubernetes.cluster"])
def test_what_runs_on_a_cluster_is_told_to_end_at_the_very_start_and_ends_with_0(
    tmp_path: Path, command: str, module: str, number: str
) -> None:
    config = tmp_path / "config"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c"}}
    config.write_text(
        json.dumps({"current-context": "c", "contexts": [context], "clusters": [cluster]})
    )
    arguments = (command, "--kubeconfig", config, "--health-address", "127.0.0.1:0")
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT_IMPORT, *arguments, module, number],
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 0, ended
    assert b"Traceback" not in ended.stderr


@pytest.mark.local
def test_one_interrupt_ends_pods_gracefully_with_130(tmp_path: Path) -> None:
    process = start(tmp_path, "run", write(tmp_path, job("demo", task("worker", OBEYS))))
    assert process.stdout is not None
    assert process.stdout.readline() == b"worker-0 | ready\n"
    process.send_signal(signal.SIGINT)
    ended = Ended(process)
    assert ended.code == 130, ended
    assert ended.lines("worker-0") == ["bye"]
    assert "demo: Terminated" in ended.out


CHATTY = ("sh", "-c", "trap 'echo bye; exit 0' TERM; while :; do echo ready; sleep 0.02; done")


def kept_output(directory: Path) -> str:
    """What the only pod of the only run printed, by its file."""
    [log] = directory.glob("state/vcjob/runs/*/logs/*/*/0.log")
    return log.read_text()


@pytest.mark.local
def test_a_hang_up_that_is_heard_of_twice_ends_pods_gracefully(tmp_path: Path) -> None:
    slow = ("sh", "-c", OBEYS[2].replace("echo bye", "sleep 1; echo bye"))
    process = start(tmp_path, "run", write(tmp_path, job("demo", task("worker", slow))))
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"worker-0 | ready\n"
    process.send_signal(signal.SIGHUP)
    while b"interrupt again" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGHUP)
    ended = Ended(process)
    assert (ended.code, ended.lines("worker-0")) == (130, ["bye"]), ended


@pytest.mark.local
def test_a_terminal_that_is_closed_ends_pods_gracefully(tmp_path: Path) -> None:
    master, terminal = os.openpty()
    manifest = write(tmp_path, job("demo", task("worker", CHATTY)))
    process = start(tmp_path, "run", manifest, stdout=terminal)
    os.close(terminal)
    shown = b""
    while b"ready" not in shown:
        shown += os.read(master, 1024)
    os.close(master)
    ended = Ended(process)
    assert ended.code == 130, ended
    assert "Traceback" not in ended.err
    assert kept_output(tmp_path).endswith("bye\n")


@pytest.mark.local
def test_an_interrupt_that_also_ends_the_reader_ends_pods_gracefully(tmp_path: Path) -> None:
    process = start(tmp_path, "run", write(tmp_path, job("demo", task("worker", CHATTY))))
    assert process.stdout is not None
    assert process.stdout.readline() == b"worker-0 | ready\n"
    process.stdout.close()  # as of `vcjob run … | tee log`
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    with process.stderr:
        errors = process.stderr.read().decode()
    assert process.wait() == 130, errors
    assert kept_output(tmp_path).endswith("bye\n")


@pytest.mark.local
def test_started_with_nohup_a_run_outlives_its_terminal(tmp_path: Path) -> None:
    until_told = ("sh", "-c", "echo ready; until [ -e /meet/go ]; do sleep 0.02; done")
    manifest = write(tmp_path, job("demo", task("worker", until_told)))
    process = start(tmp_path, "run", "-v", f"{tmp_path}:/meet", manifest, before="trap '' HUP")
    assert process.stdout is not None
    assert process.stdout.readline() == b"worker-0 | ready\n"
    process.send_signal(signal.SIGHUP)
    (tmp_path / "go").touch()
    ended = Ended(process)
    assert ended.code == 0, ended


@pytest.mark.local
def test_two_interrupts_end_pods_at_once_with_130(tmp_path: Path) -> None:
    stubborn = task("worker", STUBBORN)
    stubborn["template"]["spec"]["terminationGracePeriodSeconds"] = 3600
    process = start(tmp_path, "run", write(tmp_path, job("demo", stubborn)))
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"worker-0 | ready\n"
    process.send_signal(signal.SIGINT)
    while b"interrupt again" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    ended = Ended(process)
    assert ended.code == 130, ended
    assert "at once" in ended.err


@pytest.mark.local
def test_of_several_jobs_the_worst_decides(tmp_path: Path) -> None:
    manifest = write(
        tmp_path,
        job("good", task("worker", SUCCEEDS)),
        job("bad", task("worker", FAILS)),
    )
    ended = run(tmp_path, "run", manifest)
    assert ended.code == 1, ended
    assert "good: Completed" in ended.out
    assert "bad: Failed" in ended.out
    assert ended.lines("bad/worker-0") == ["broken"]


@pytest.mark.local
def test_scaling_says_what_it_changes(tmp_path: Path) -> None:
    hello = task("worker", ("sh", "-c", "echo $VC_WORKER_NUM"), replicas=3)
    manifest = write(tmp_path, job("demo", hello))
    ended = run(tmp_path, "run", "--scale", "worker=1", manifest)
    assert ended.code == 0, ended
    assert ended.lines("worker-0") == ["1"]
    assert ended.lines("worker-1") == []
    assert "worker" in ended.err.splitlines()[0]
    assert "3" in ended.err.splitlines()[0]
