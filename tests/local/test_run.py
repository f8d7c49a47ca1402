"""Whole Jobs as real pods: what pods find, how policies end them, what output survives."""

import json
import os
import select
import signal
from pathlib import Path

import pytest
from cli_runs import Ended, Manifest, job, run, start, task, write

pytestmark = pytest.mark.local

HELLO = ("sh", "-c", "echo hello")


def python(code: str) -> tuple[str, ...]:
    """A command that runs a Python program."""
    return ("python", "-uc", code)


def test_pods_find_the_hosts_files_and_the_environment(tmp_path: Path) -> None:
    show = (
        "sh",
        "-c",
        "for f in ps.host worker.host VC_WORKER_NUM; do echo $f: $(cat /etc/volcano/$f); done;"
        "echo $VC_TASK_INDEX $VC_PS_HOSTS $VC_WORKER_HOSTS $(hostname)",
    )
    ended = run(
        tmp_path,
        "run",
        write(tmp_path, job("demo", task("ps", HELLO), task("worker", show, replicas=2))),
    )
    assert ended.code == 0, ended
    assert ended.lines("ps-0") == ["hello"]
    for index in range(2):
        assert ended.lines(f"worker-{index}") == [
            "ps.host: demo-ps-0.demo",
            "worker.host: demo-worker-0.demo demo-worker-1.demo",
            "VC_WORKER_NUM: 2",
            f"{index} demo-ps-0.demo demo-worker-0.demo,demo-worker-1.demo demo-worker-{index}",
        ]


@pytest.mark.parametrize(
    ("first", "spec", "code"),
    [
        ("exit 0", {"minSuccess": 1}, 0),
        (
            "exit 5",
            {"maxRetry": 1, "policies": [{"event": "PodFailed", "action": "RestartPod"}]},
            1,
        ),
        ("exit 0", {"minSuccess": 1, "ttlSecondsAfterFinished": 0}, 0),
    ],
)
def test_what_a_job_that_has_ended_no_longer_needs_has_its_grace_period(
    tmp_path: Path, first: str, spec: Manifest, code: int
) -> None:
    saved = tmp_path / "saved"
    saved.mkdir()
    until_ready = "until [ -e /saved/ready ]; do sleep 0.02; done; "
    saves = "trap 'sleep 0.3; echo saved; touch /saved/it; exit 0' TERM; touch /saved/ready; "
    other = task("other", ("sh", "-c", f"{saves} while :; do sleep 0.02; done"))
    manifest = write(
        tmp_path, job("demo", task("first", ("sh", "-c", until_ready + first)), other, **spec)
    )
    ended = run(tmp_path, "run", manifest, "-v", f"{saved}:/saved")
    assert ended.code == code, ended
    assert (saved / "it").exists(), ended
    assert ended.lines("other-0") == ["saved"]
    if "ttlSecondsAfterFinished" not in spec:  # such a Job is gone before it can tell
        assert "other: no pods left" in ended.out


# The first process of a container hears SIGTERM only if it handles it.
SERVER = """
import signal, socket, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
with socket.create_server(("", 2222)) as server:
    while True:
        server.accept()[0].close()
"""
OWN = """
import socket, time
while True:
    try:
        socket.create_connection(("serving-server-0.serving", 2222)).close()
        break
    except OSError:
        time.sleep(0.05)
print("own pod gets in")
open("/meet/listening", "w").write("x")
open("/meet/tried").read()
"""
STRANGER = """
import socket
open("/meet/listening").read()
try:
    address = socket.gethostbyname("serving-server-0.serving")
    print("resolved")
    socket.create_connection((address, 2222), timeout=1)
    print("a stranger gets in")
except OSError as error:
    print("stranger:", type(error).__name__)
open("/meet/tried", "w").write("x")
"""


def test_another_jobs_name_resolves_but_only_own_pods_get_in(tmp_path: Path) -> None:
    meet = tmp_path / "meet"
    meet.mkdir()
    for name in ("listening", "tried"):
        os.mkfifo(meet / name)
    completes = [{"event": "TaskCompleted", "action": "CompleteJob"}]
    manifest = write(
        tmp_path,
        job(
            "serving",
            task("server", python(SERVER)),
            task("client", python(OWN), policies=completes),
        ),
        job("other", task("client", python(STRANGER))),
    )
    ended = run(tmp_path, "run", "-v", f"{meet}:/meet", manifest)
    assert ended.code == 0, ended
    assert ended.lines("serving/client-0") == ["own pod gets in"]
    assert ended.lines("other/client-0")[0] == "resolved"
    assert ended.lines("other/client-0")[1] in (
        "stranger: TimeoutError",
        "stranger: ConnectionRefusedError",
    )


def test_a_failing_pod_restarts_the_job_until_its_retries_are_used_up(tmp_path: Path) -> None:
    restarts = [{"event": "PodFailed", "action": "RestartJob"}]
    fails = task("worker", ("sh", "-c", "echo try; exit 3"))
    ended = run(tmp_path, "run", write(tmp_path, job("demo", fails, maxRetry=2, policies=restarts)))
    assert ended.code == 1, ended
    assert "demo: Failed" in ended.out
    assert ended.lines("worker-0") == ["try", "try"]  # maxRetry is the number of attempts
    assert ended.err.count("demo is Restarting") == 2


def test_what_each_attempt_printed_stays_apart_and_the_last_ones_pods_stay_readable(
    tmp_path: Path,
) -> None:
    saved = tmp_path / "saved"
    saved.mkdir()
    wait = "until [ -e /saved/ready ]; do sleep 0.02; done; "
    fails = "[ ! -e /saved/second ] || exit 4; rm /saved/ready; touch /saved/second; "
    worker = task("worker", ("sh", "-c", f"{wait}{fails}echo first words; exit 3"))
    runs_on = "trap 'exit 0' TERM; echo on; touch /saved/ready; while :; do sleep 0.02; done"
    other = task("other", ("sh", "-c", runs_on))
    restarts = [{"event": "PodFailed", "action": "RestartJob"}]
    manifest = write(tmp_path, job("demo", worker, other, maxRetry=2, policies=restarts))
    ended = run(tmp_path, "run", manifest, "-v", f"{saved}:/saved")
    assert ended.code == 1, ended
    assert "  worker-0 ended with Error, exit code 4\n" in ended.out  # it said nothing
    [directory] = (tmp_path / "state/vcjob/runs").iterdir()
    logs = {
        str(path.relative_to(directory / "logs")): path.read_text()
        for path in directory.glob("logs/*/*/*")
    }
    assert logs == {
        "default_demo-worker-0/main/0.log": "first words\n",
        "default_demo-other-0/main/0.log": "on\n",
        "default_demo-other-0_2/main/0.log": "on\n",
    }
    left = json.loads((directory / "objects.json").read_text())
    phases = {pod["metadata"]["name"]: pod["status"]["phase"] for pod in left["pods"]}
    assert phases == {"demo-worker-0": "Failed", "demo-other-0": "Succeeded"}


@pytest.mark.parametrize(("exit_code", "expected"), [(7, 6), (8, 1)])
def test_a_policy_for_an_exit_code_applies_to_that_code_only(
    tmp_path: Path, exit_code: int, expected: int
) -> None:
    aborts = [{"exitCode": 7, "action": "AbortJob"}]
    fails = task("worker", ("sh", "-c", f"exit {exit_code}"))
    ended = run(tmp_path, "run", write(tmp_path, job("demo", fails, policies=aborts)))
    assert ended.code == expected, ended


def test_a_completed_task_completes_the_job_and_ends_the_other_pods(tmp_path: Path) -> None:
    completes = [{"event": "TaskCompleted", "action": "CompleteJob"}]
    manifest = write(
        tmp_path,
        job(
            "demo",
            task("ps", ("sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait")),
            task("worker", HELLO, policies=completes),
        ),
    )
    ended = run(tmp_path, "run", manifest)
    assert ended.code == 0, ended
    assert "demo: Completed" in ended.out


def _processes_saying(words: str) -> list[int]:
    """The processes of this machine with ``words`` in their command line."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if words.encode() in (directory / "cmdline").read_bytes():
                found.append(int(directory.name))
        except OSError:
            continue  # it ended while we looked
    return found


def test_nothing_lives_on_after_vcjob_is_killed(tmp_path: Path) -> None:
    mark = f"mark-{os.getpid()}-{tmp_path.name}"
    waits = ("sh", "-c", f"trap '' TERM HUP; echo ready; sleep 3600; : {mark}")
    manifest = write(tmp_path, job("demo", task("worker", waits, replicas=2)))
    process = start(tmp_path, "run", manifest)
    assert process.stdout is not None
    ready = {process.stdout.readline() for _ in range(2)}
    assert ready == {b"worker-0 | ready\n", b"worker-1 | ready\n"}
    descriptors = [os.pidfd_open(number) for number in _processes_saying(mark)]
    assert len(descriptors) >= 2

    process.send_signal(signal.SIGKILL)
    Ended(process)
    for descriptor in descriptors:
        select.select([descriptor], [], [])  # readable once that process has ended
        os.close(descriptor)
    assert _processes_saying(mark) == []
    assert run(tmp_path, "run", write(tmp_path, job("demo", task("worker", HELLO)))).code == 0


def test_two_runs_at_once_do_not_see_each_other(tmp_path: Path) -> None:
    meet = tmp_path / "meet"
    meet.mkdir()
    for name in ("here", "there"):
        os.mkfifo(meet / name)

    def manifest(own: str, other: str, order: str) -> Manifest:
        # Both jobs have one name and one port; each run waits for the other while it lives.
        meeting = f"open('/meet/{own}', 'w').write('x')", f"open('/meet/{other}').read()"
        calls = "\n".join(meeting if order == "first" else reversed(meeting))
        return job(
            "same",
            task(
                "worker",
                python(
                    "import socket\n"
                    "server = socket.create_server(('', 2222))\n"
                    f"{calls}\n"
                    f"server.settimeout(20)\n"
                    "client = socket.create_connection(('same-worker-0.same', 2222))\n"
                    f"client.sendall(b'{own}')\n"
                    "print(server.accept()[0].recv(9).decode())\n"
                ),
            ),
        )

    first = write(tmp_path, manifest("here", "there", "first"), name="first.yaml")
    second = write(tmp_path, manifest("there", "here", "second"), name="second.yaml")
    runs = [start(tmp_path, "run", "-v", f"{meet}:/meet", file) for file in (first, second)]
    ended = [Ended(process) for process in runs]
    assert [one.code for one in ended] == [0, 0], ended
    assert [one.lines("worker-0") for one in ended] == [["here"], ["there"]]


def test_output_that_is_not_text_and_very_long_lines_come_through(tmp_path: Path) -> None:
    prints = (
        "import sys; out = sys.stdout.buffer;"
        "out.write(b'\\xff\\x00\\xfe\\n' + b'a' * 100_000 + b'\\n' + b'no newline'); out.flush()"
    )
    ended = run(tmp_path, "run", write(tmp_path, job("demo", task("worker", python(prints)))))
    assert ended.code == 0, ended
    lines = [line for line in ended.raw.split(b"\n") if line.startswith(b"worker-0 | ")]
    said = [line.removeprefix(b"worker-0 | ") for line in lines]
    assert said[0] == b"\xff\x00\xfe"
    assert b"".join(said[1:-1]) == b"a" * 100_000
    assert said[-1] == b"no newline"


def test_a_flood_of_output_arrives_whole(tmp_path: Path) -> None:
    floods = ("sh", "-c", "seq 300000; echo $0 is over", "flood")
    ended = run(tmp_path, "run", write(tmp_path, job("demo", task("worker", floods))))
    assert ended.code == 0
    assert ended.lines("worker-0") == [*map(str, range(1, 300_001)), "flood is over"]


def test_a_reader_that_goes_away_ends_the_run_without_a_traceback(tmp_path: Path) -> None:
    process = start(tmp_path, "run", write(tmp_path, job("demo", task("worker", ("yes", "on")))))
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"worker-0 | on\n"
    process.stdout.close()
    with process.stderr:
        errors = process.stderr.read().decode()
    assert process.wait() == 1
    assert "output cannot be written: Broken pipe" in errors
    assert "Traceback" not in errors
