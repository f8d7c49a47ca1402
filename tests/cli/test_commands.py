"""Commands on a cluster that runs: what they print, what they do, and their exit codes."""

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tarfile
import termios
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from played_cluster import TOKEN, Elsewhere, served_elsewhere

from vcjob.api.defaults import apply_defaults
from vcjob.api.errors import VcjobError
from vcjob.api.kinds import EVENT, JOB, POD
from vcjob.api.types import Object
from vcjob.cli import target
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.main import cli
from vcjob.controller.cluster import NotFound


def job(name: str = "mnist", workers: int = 2, **spec: Any) -> Object:
    container = {
        "name": "main",
        "image": "busybox",
        "ports": [{"name": "web", "containerPort": 80}],
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    tasks = [{"name": "ps", "replicas": 1, "template": template},
             {"name": "worker", "replicas": workers, "template": template}]  # fmt: skip
    metadata = {"name": name, "namespace": "default", "labels": {"team": "a"}}
    return apply_defaults(
        {"metadata": metadata, "spec": {"tasks": tasks, "plugins": {"svc": []}, **spec}}
    )


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Elsewhere]:
    """A cluster with a running Job, as the engine of this machine."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("VCJOB_CONTEXT", raising=False)
    with served_elsewhere() as elsewhere:
        write_kubeconfig(target.engine_kubeconfig(), elsewhere.server.url)
        create(elsewhere, job())
        yield elsewhere


def write_kubeconfig(path: Path, url: str, context: str = "vcjob") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    config = {
        "current-context": context,
        "contexts": [{"name": context, "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": TOKEN}}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


def create(there: Elsewhere, obj: Object) -> None:
    there.do(there.face.store.create(JOB, obj))
    in_phase(there, obj["metadata"]["name"], "Running")


def in_phase(there: Elsewhere, name: str, phase: str) -> Object:
    return there.until(
        JOB, name, lambda obj: (obj.get("status") or {}).get("state", {}).get("phase") == phase
    )


def ok(*arguments: str) -> str:
    """What a command prints that must succeed."""
    code, output, errors = returned(*arguments)
    assert code == 0, errors
    return output


def returned(*arguments: str) -> tuple[int, str, str]:
    """The exit code that a command returns, and its output and errors."""
    runner = CliRunner()
    with runner.isolation() as (out, err, _):
        try:
            code = cli.main(list(arguments), prog_name="vcjob", standalone_mode=False)
        finally:
            output, errors = (
                part.getvalue().decode(errors="backslashreplace") for part in (out, err)
            )
    return int(code or 0), output, errors


def error_of(*arguments: str) -> str:
    with pytest.raises((VcjobError, click.ClickException)) as caught:
        returned(*arguments)
    error = caught.value
    return error.format_message() if isinstance(error, click.ClickException) else str(error)


def test_p104_ls_lists_jobs_and_the_pods_of_one(there: Elsewhere) -> None:
    heading, row = ok("ls").splitlines()
    assert heading.split() == ["NAME", "PHASE", "REPLICAS", "MIN", "PENDING", "RUNNING",
                               "SUCCEEDED", "FAILED", "RETRIES", "AGE"]  # fmt: skip
    assert row.split()[:6] == ["mnist", "Running", "3", "3", "0", "3"]
    assert ok("ls", "-A", "-o", "wide").splitlines()[1].split()[:2] == ["default", "mnist"]
    pods = [line.split()[:3] for line in ok("ls", "mnist").splitlines()]
    assert pods == [["POD", "READY", "STATUS"], ["ps-0", "1/1", "Running"],
                    ["worker-0", "1/1", "Running"], ["worker-1", "1/1", "Running"]]  # fmt: skip
    assert ok("ls", "mnist/worker", "-o", "name").split() == [
        "pod/mnist-worker-0", "pod/mnist-worker-1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        (["-l", "team=a"], ""),
        (["-l", "team=b"], "there are no such Jobs"),
        (["--phase", "running"], ""),
        (["--phase", "Failed"], "there are no such Jobs"),
        (["-q", "default"], ""),
        (["-q", "other"], "there are no such Jobs"),
        (["-n", "elsewhere"], 'there are no Jobs in namespace "elsewhere"'),
    ],
)
def test_p104_ls_shows_what_is_asked_for(
    there: Elsewhere, options: list[str], missing: str
) -> None:
    code, output, errors = returned("ls", *options)
    assert code == 0
    assert ("mnist" in output) is (not missing)
    assert missing in errors
    assert ("there are no" in errors) is bool(missing)


def test_ls_of_a_phase_that_there_is_not_is_refused(there: Elsewhere) -> None:
    assert "'Complete' is not one of 'new', 'pending'" in error_of("ls", "--phase", "Complete")


def test_get_prints_objects_for_programs_and_tables_for_people(there: Elsewhere) -> None:
    assert json.loads(ok("get", "mnist", "-o", "json"))["metadata"]["name"] == "mnist"
    assert yaml.safe_load(ok("get", "vj/mnist", "-o", "yaml"))["kind"] == "Job"
    assert json.loads(ok("get", "mnist/worker-0", "-o", "json"))["kind"] == "Pod"
    listed = yaml.safe_load(ok("get", "po", "-o", "yaml"))
    assert [pod["kind"] for pod in listed["items"]] == ["Pod"] * 3
    heading, row = (line.split() for line in ok("get", "pods", "mnist-ps-0").splitlines())
    assert (heading[:3], row[:3]) == (["NAME", "READY", "STATUS"], ["mnist-ps-0", "1/1", "Running"])
    assert "NODE" in ok("get", "mnist/ps-0", "-o", "wide").splitlines()[0]
    assert ok("get", "queues", "default").split()[0] == "NAME"
    heading, row = (line.split() for line in ok("get", "jobs", "-A").splitlines())
    assert (heading[:2], row[:2]) == (["NAMESPACE", "NAME"], ["default", "mnist"])
    assert ok("get", "job", "-o", "name") == "job.batch.volcano.sh/mnist\n"


def test_what_is_not_there_is_said_with_what_was_meant(there: Elsewhere) -> None:
    create(there, {**job(), "metadata": {"name": "mnist2", "namespace": "default"}})
    assert 'did you mean "mnist"?' in error_of("describe", "mnits")
    assert error_of("logs", "mnist-worker-0").endswith("write mnist/worker-0")
    assert error_of("logs", "mnist", "worker-0").endswith("with a slash: mnist/worker-0")
    assert error_of("exec", "mnist/wroker-1", "--", "ls").endswith("mean mnist/worker-1?")
    assert "has no pod or task x; its tasks are ps, worker" in error_of("ls", "mnist/x")
    assert "has 2 pods; name one: mnist/worker-0, mnist/worker-1" in error_of(
        "exec", "mnist/worker", "ls"
    )
    assert "but in default: use -n default" in error_of("describe", "mnist", "-n", "else")
    assert "mean the kind pod?" in error_of("get", "podz")
    assert "JOB or JOB/POD" in error_of("logs", "a/b/c")


def test_logs_of_one_pod_come_as_they_are(there: Elsewhere) -> None:
    there.face.logs["mnist-worker-0"] = b"one\n\x1b[2Jtwo\xff\n"
    assert ok("logs", "mnist/worker-0") == "one\n\x1b[2Jtwo\\xff\n"
    assert ok("logs", "mnist/mnist-worker-0", "--tail", "1", "--prefix").startswith("worker-0 | ")


def test_logs_of_a_job_stand_behind_their_pods_names(there: Elsewhere) -> None:
    for pod in ("ps-0", "worker-0", "worker-1"):
        there.face.logs[f"mnist-{pod}"] = f"I am {pod}\n".encode()
    assert ok("logs", "mnist").splitlines() == [
        "ps-0     | I am ps-0", "worker-0 | I am worker-0", "worker-1 | I am worker-1",
    ]  # fmt: skip
    assert ok("logs", "mnist/worker").count("\n") == 2


def test_following_logs_ends_with_the_job(there: Elsewhere) -> None:
    there.face.logs["mnist-worker-1"] = b"done\n"
    for pod in ("ps-0", "worker-0", "worker-1"):
        there.do(there.face.end_pod(f"mnist-{pod}"))
    assert "worker-1 | done" in ok("logs", "-f", "mnist")
    assert ok("logs", "-f", "mnist/worker-1") == "done\n"


def test_logs_of_a_container_that_does_not_exist(there: Elsewhere) -> None:
    said = error_of("logs", "mnist", "-c", "mian")
    assert said == 'no pod of mnist has a container mian; did you mean "main"?'
    assert error_of("logs", "-f", "mnist", "-c", "mian") == said


@pytest.mark.parametrize("options", [[], ["-f"]])
def test_logs_end_when_nobody_reads_them(there: Elsewhere, options: list[str]) -> None:
    for pod in ("ps-0", "worker-0", "worker-1"):
        there.face.logs[f"mnist-{pod}"] = b"x" * 100 + b"\n" * 100_000
    process = subprocess.Popen(
        [sys.executable, "-m", "vcjob", "logs", "mnist", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout
    assert process.stdout.read(5)
    process.stdout.close()
    assert process.stderr
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 1


def test_what_starts_while_logs_are_followed_is_shown_whole(there: Elsewhere) -> None:
    there.face.logs["mnist-worker-0"] = b"one\ntwo\n"
    there.do(there.face.end_pod("mnist-worker-0"))
    before = there.face.store.follows[POD]
    process = subprocess.Popen(
        [sys.executable, "-m", "vcjob", "logs", "-f", "--tail", "0", "mnist"],
        stdout=subprocess.PIPE,
    )  # fmt: skip
    there.do(there.face.followed(POD, before + 1))
    there.face.logs["mnist-worker-2"] = b"new\n"
    ok("scale", "mnist", "worker=3")
    there.until(POD, "mnist-worker-2", lambda pod: pod["status"]["phase"] == "Running")
    for pod in ("ps-0", "worker-1", "worker-2"):
        there.do(there.face.end_pod(f"mnist-{pod}"))
    output, _ = process.communicate()
    assert output == b"worker-2 | new\n"
    assert process.returncode == 0


@pytest.mark.parametrize("command", ["logs -f mnist", "wait mnist", "events -w"])
def test_an_interrupted_command_ends_without_ado(there: Elsewhere, command: str) -> None:
    watched = {"logs": POD, "wait": JOB, "events": EVENT}[command.split()[0]]
    before = there.face.store.follows[watched]
    process = subprocess.Popen(
        [sys.executable, "-m", "vcjob", *command.split()],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    there.do(there.face.followed(watched, before + 1))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert (process.returncode, errors.strip()) == (130, b"")


def test_a_command_that_there_is_not_gets_a_suggestion() -> None:
    assert error_of("rnu") == 'there is no command "rnu"; did you mean run?'
    assert error_of("frobnicate") == 'there is no command "frobnicate"'


def test_describe_tells_why(there: Elsewhere) -> None:
    said = ok("describe", "mnist")
    for part in ("Phase:         Running for", "Plugins:       svc", "Labels:        team=a"):
        assert part in said
    rows = [line.split() for line in said.splitlines()]
    assert ["worker", "2", "2", "0", "2", "0", "0"] in rows
    assert ["worker-1", "1/1", "Running", "0", "10.1.0.2"] in rows
    assert "Events:" in said
    pod = ok("describe", "mnist/ps-0")
    assert "Host name:     mnist-ps-0.mnist\n" in pod
    assert next(line.split()[:4] for line in pod.splitlines() if line.startswith("main ")) == [
        "main",
        "Running",
        "true",
        "0",
    ]
    assert ok("describe", "job", "mnist").splitlines()[0] == said.splitlines()[0]
    alone = {"spec": {"subdomain": None}}
    there.do(there.face.store.patch(POD, "default", "mnist-ps-0", alone))
    assert "Host name:     mnist-ps-0\n" in ok("describe", "mnist/ps-0")
    waits = {"metadata": {"finalizers": ["example.org/waits"]}}
    there.do(there.face.store.patch(JOB, "default", "mnist", waits))
    there.do(there.face.store.delete(JOB, "default", "mnist"))
    assert re.search(r"Phase: +Running for \w+, being deleted\n", ok("describe", "mnist"))


def test_describe_leaves_out_the_manifest_that_kubectl_keeps_and_marks_what_it_cuts_off(
    there: Elsewhere,
) -> None:
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "mine"}
    there.do(
        there.face.store.patch(JOB, "default", "mnist", {"metadata": {"annotations": applied}})
    )
    said = ok("describe", "mnist")
    assert "note=mine" in said
    assert "last-applied" not in said

    long = job("long", workers=1)
    for task in long["spec"]["tasks"]:
        task["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", "echo " + "x" * 80]
    create(there, long)
    row = next(
        line for line in ok("describe", "long/ps-0").splitlines() if line.startswith("main ")
    )
    assert f"sh -c echo {'x' * 48}…" in row


def test_describe_tells_all_policies_in_the_order_in_which_they_are_asked(there: Elsewhere) -> None:
    one = job("one", policies=[{"events": ["PodEvicted", "Unknown"], "action": "AbortJob"}])
    one["spec"]["tasks"][1]["policies"] = [
        {"event": "PodFailed", "action": "RestartPod", "timeout": "1s"},
        {"exitCode": 3, "action": "TerminateJob"},
    ]
    create(there, one)
    assert (
        "Policies:      PodFailed → RestartPod after 1s (task worker); "
        "exit code 3 → TerminateJob (task worker); PodEvicted, Unknown → AbortJob\n"
    ) in ok("describe", "one")


def test_texts_of_objects_are_shown_not_obeyed(there: Elsewhere) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\nName: other"
    patch = {"metadata": {"labels": {"team": "a"}, "annotations": {"note": evil}}}
    there.do(there.face.store.patch(JOB, "default", "mnist", patch))
    status = {"status": {"message": evil}}
    there.do(there.face.store.patch(POD, "default", "mnist-ps-0", status, subresource="status"))
    for command in (
        ("describe", "mnist"),
        ("ls", "mnist", "-o", "wide"),
        ("describe", "mnist/ps-0"),
    ):
        said = ok(*command)
        assert "\x1b" not in said
        assert "\x07" not in said
        assert "\\x1b]0;owned\\x07" in said


def test_events_of_a_job_and_of_a_pod(there: Elsewhere) -> None:
    for pod in ("ps-0", "worker-0", "worker-1"):
        there.do(there.face.end_pod(f"mnist-{pod}"))
    in_phase(there, "mnist", "Completed")
    returned("wait", "mnist")
    told = json.loads(ok("events", "mnist", "-o", "json"))["items"]
    assert {event["involvedObject"]["name"] for event in told} == {"mnist"}
    versions = [int(event["metadata"]["resourceVersion"]) for event in told]
    assert versions == sorted(versions), "those of one second, too, are shown as they came"
    assert "job/mnist" in ok("events")
    assert returned("events", "mnist/worker-0")[2] == "vcjob: there are no Events yet\n"
    assert returned("events", "--warnings")[2] == "vcjob: there are no warnings yet\n"
    create(there, {**job(), "metadata": {"name": "mnist-b", "namespace": "default"}})
    ok("suspend", "mnist-b")
    in_phase(there, "mnist-b", "Aborted")
    assert "mnist-b" in ok("events", "mnist-b")
    assert "mnist-b" not in ok("events", "mnist"), "a Job whose name begins alike is another Job"


def test_exec_passes_input_output_and_the_exit_code(there: Elsewhere) -> None:
    seen: list[tuple[list[str], bytes]] = []

    def program(command: list[str], given: bytes) -> tuple[int, bytes, bytes]:
        seen.append((command, given))
        return 7, given.upper(), b"oh\n"

    there.face.programs["sh"] = program
    ended = subprocess.run(
        [sys.executable, "-m", "vcjob", "exec", "-i", "mnist/worker-0", "--", "sh", "-c", "-x"],
        input=b"hello", capture_output=True,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, b"HELLO", b"oh\n")
    assert seen == [(["sh", "-c", "-x"], b"hello")]
    assert returned("exec", "mnist/worker-0", "sh", "-l")[0] == 7
    assert seen[1] == (["sh", "-l"], b"")


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (("mnist/worker-0", "-n", "default", "--", "sh", "-c"), ["sh", "-c"]),
        (("-n", "default", "mnist/worker-0", "-c", "main", "--", "sh"), ["sh"]),
        (("mnist/worker-0", "sh", "-n", "x", "--", "y"), ["sh", "-n", "x", "--", "y"]),
        (("mnist/worker-0", "sh", "--", "y"), ["sh", "--", "y"]),
        (("mnist/worker-0", "--", "sh", "--", "y"), ["sh", "--", "y"]),
    ],
)
def test_exec_takes_its_own_options_up_to_the_dashes(
    there: Elsewhere, arguments: tuple[str, ...], command: list[str]
) -> None:
    seen: list[list[str]] = []

    def program(called: list[str], _: bytes) -> tuple[int, bytes, bytes]:
        seen.append(called)
        return 0, b"", b""

    there.face.programs["sh"] = program
    assert returned("exec", *arguments)[0] == 0
    assert seen == [command]


def test_an_option_of_exec_in_the_place_of_a_program_is_refused(there: Elsewhere) -> None:
    said = "--context is no program; options of exec stand before JOB/POD, or before --"
    assert said in error_of("exec", "mnist/worker-0", "--context", "lab")


def test_exec_gives_the_program_a_terminal_and_leaves_ours_as_it_was(there: Elsewhere) -> None:
    there.face.programs["sh"] = lambda command, given: (5, b"\x1b[1m" + given, b"")
    ours, its = os.openpty()
    termios.tcsetwinsize(its, (41, 132))
    before = termios.tcgetattr(its)
    plain = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-m", "vcjob", "exec", "-it", "mnist/worker-0", "--", "sh"],
        stdin=its, stdout=its, stderr=its, env=plain, start_new_session=True,
    )  # fmt: skip
    said = b""
    while not said.endswith(b"$ "):
        said += os.read(ours, 1000)
    os.write(ours, b"hi\x03\r")  # in a raw terminal Ctrl-C is the program's
    assert process.wait() == 5
    assert os.read(ours, 1000) == b"\x1b[1mhi\x03\r"
    assert there.face.sizes == [{"Width": 132, "Height": 41}]
    assert termios.tcgetattr(its) == before
    os.close(ours)
    os.close(its)


def archive(*members: tuple[str, bytes | None], link: tuple[str, str] | None = None) -> bytes:
    """A tar archive of files (name, content) and directories (name, None)."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if content is None:
                member.type = tarfile.DIRTYPE
                member.mode = 0o755
            else:
                member.size = len(content)
            tar.addfile(member, io.BytesIO(content or b""))
        if link:
            member = tarfile.TarInfo(link[0])
            member.type, member.linkname = tarfile.SYMTYPE, link[1]
            tar.addfile(member)
    return raw.getvalue()


def test_cp_brings_files_here(there: Elsewhere, tmp_path: Path) -> None:
    content = bytes(range(256)) * 3000
    raw = archive(("out", None), ("out/a", content), ("out/deep", None), ("out/deep/b", b"b"))
    asked: list[list[str]] = []

    def program(command: list[str], given: bytes) -> tuple[int, bytes, bytes]:
        asked.append(command)
        return 0, raw, b""

    there.face.programs["tar"] = program
    returned("cp", "mnist/worker-0:/data/out", str(tmp_path / "copy"))
    assert (tmp_path / "copy" / "a").read_bytes() == content
    assert (tmp_path / "copy" / "deep" / "b").read_bytes() == b"b"
    assert asked == [["tar", "cf", "-", "-C", "/data", "--", "out"]]
    returned("cp", "mnist/worker-0:/data/out", str(tmp_path))
    assert (tmp_path / "out" / "a").exists(), "an existing directory gets the copy inside"


@pytest.mark.parametrize(
    "raw",
    [
        archive(("x/../../evil", b"")),
        archive(("out", None), link=("out/link", "../../outside")),
        archive(("out", b"")) [:300],
    ],
    ids=["up", "link", "cut"],
)  # fmt: skip
def test_cp_takes_nothing_out_of_place_from_a_pod(
    there: Elsewhere, tmp_path: Path, raw: bytes
) -> None:
    there.face.programs["tar"] = lambda command, given: (0, raw, b"")
    (tmp_path / "in").mkdir()
    code, _, errors = returned("cp", "mnist/worker-0:/out", str(tmp_path / "in" / "copy"))
    assert code == 1
    assert "what came is not written" in errors
    assert not (tmp_path / "evil").exists()
    assert not (tmp_path / "in" / "evil").exists()


def test_cp_says_in_one_line_what_went_wrong_in_the_pod(there: Elsewhere, tmp_path: Path) -> None:
    there.face.programs["tar"] = lambda command, given: (2, b"", b"tar: out: no\ntar: Exiting\n")
    code, _, errors = returned("cp", "mnist/worker-0:/out", str(tmp_path / "copy"))
    assert (code, errors) == (1, "vcjob: tar: out: no; tar: Exiting\n")


def test_cp_takes_files_there(there: Elsewhere, tmp_path: Path) -> None:
    got: list[tuple[list[str], dict[str, bytes]]] = []

    def untar(command: list[str], given: bytes) -> tuple[int, bytes, bytes]:
        with tarfile.open(fileobj=io.BytesIO(given)) as tar:
            files = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}  # type: ignore[union-attr]
        got.append((command, files))
        return 0, b"", b""

    there.face.programs |= {"tar": untar, "test": lambda command, given: (1, b"", b"")}
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(b"x" * 200_000)
    code, _, errors = returned("cp", str(tmp_path / "in"), "mnist/worker-0:/data/new")
    assert (code, errors) == (0, "")
    assert got == [(["tar", "xmf", "-", "-C", "/data"], {"new/a": b"x" * 200_000})]
    there.face.programs["test"] = lambda command, given: (0, b"", b"")
    returned("cp", str(tmp_path / "in"), "mnist/worker-0:/data")
    assert list(got[1][1]) == ["in/a"]
    there.face.programs["tar"] = lambda command, given: (2, b"", b"tar: no space\n")
    assert returned("cp", str(tmp_path / "in"), "mnist/ps-0:/d")[::2] == (
        1,
        "vcjob: tar: no space\n",
    )


def test_cp_says_what_it_wants(there: Elsewhere, tmp_path: Path) -> None:
    assert "one of SOURCE and DESTINATION is in a pod" in error_of("cp", "a", "b")
    assert "does not exist" in error_of("cp", str(tmp_path / "no"), "mnist/ps-0:/x")
    assert "has no path behind the colon" in error_of("cp", "mnist/ps-0:", "x")


def test_port_forward_carries_connections_until_the_pod_is_gone(
    there: Elsewhere, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    there.face.ports[80] = bytes.upper
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    heard: list[bytes] = []
    listening = threading.Event()
    echo = click.echo

    def note(message: Any = None, **options: Any) -> None:
        echo(message, **options)
        if "Forwarding from" in str(message):
            listening.set()

    monkeypatch.setattr(click, "echo", note)

    def talk() -> None:
        listening.wait(20)
        for name in ("first", "second"):
            with closing(socket.create_connection(("127.0.0.1", port))) as one:
                one.sendall(name.encode())
                heard.append(one.recv(100))
        there.do(there.face.store.delete(JOB, "default", "mnist"))
        pods_gone(there)
        with closing(socket.create_connection(("127.0.0.1", port))) as one:
            one.sendall(b"late")
            heard.append(one.recv(100))

    thread = threading.Thread(target=talk)
    thread.start()
    code, output, errors = returned("port-forward", "mnist/worker-0", f"{port}:web")
    thread.join()
    assert heard == [b"FIRST", b"SECOND", b""]
    assert output == f"Forwarding from 127.0.0.1:{port} -> mnist/worker-0:80\n"
    assert (code, errors) == (1, "vcjob: the pod mnist/worker-0 is gone\n")


def pods_gone(there: Elsewhere) -> None:
    async def wait() -> None:
        store = there.face.store
        since = str(store.version)
        if not (await store.list(POD)).items:
            return
        async for _ in store.watch(POD, since):
            if not (await store.list(POD)).items:
                return

    there.do(wait())


def test_a_port_that_is_taken_here_is_told_in_one_sentence(there: Elsewhere) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert error_of("port-forward", "mnist/ps-0", f"{port}:80") == (
            f"cannot listen on 127.0.0.1:{port}: Address already in use; choose another port: "
            "LOCAL:PORT"
        )


def test_ports_are_checked(there: Elsewhere) -> None:
    assert 'no port called "ssh"; there are: web' in error_of("port-forward", "mnist/ps-0", "1:ssh")
    for wrong in ("70000", "0", "80:0", ":", "x:80"):
        assert "is not PORT" in error_of("port-forward", "mnist/ps-0", wrong)


@pytest.mark.parametrize(
    ("exit_code", "wanted", "code", "said"),
    [
        (0, [], ExitCode.COMPLETED, "mnist is Completed"),
        (3, [], ExitCode.FAILED, "mnist is Failed"),
        (0, ["--for=phase=completed"], ExitCode.COMPLETED, "mnist is Completed"),
        (3, ["--for", "phase=Completed"], ExitCode.FAILED, "mnist is Failed"),
        (3, ["--for=phase=Completed,Failed"], ExitCode.COMPLETED, "mnist is Failed"),
        (0, ["--for=condition=Running"], ExitCode.COMPLETED, "mnist is Completed"),
    ],
)
def test_wait_ends_as_the_job_does(
    there: Elsewhere, exit_code: int, wanted: list[str], code: ExitCode, said: str
) -> None:
    for pod in ("ps-0", "worker-0", "worker-1"):
        there.do(there.face.end_pod(f"mnist-{pod}", exit_code))
    in_phase(there, "mnist", "Failed" if exit_code else "Completed")
    got, output, errors = returned("wait", "mnist", *wanted)
    assert got == code
    assert said in output + errors


def test_wait_has_an_end(there: Elsewhere) -> None:
    code, _, errors = returned("wait", "mnist", "--timeout", "0.05")
    assert (code, errors) == (1, "vcjob: the time is over; still waited for: mnist\n")
    assert 'did you mean "Completed"?' in error_of("wait", "mnist", "--for=phase=Complete")
    assert "is not phase=PHASE" in error_of("wait", "mnist", "--for=done")


def test_a_job_is_suspended_and_resumed(there: Elsewhere) -> None:
    assert ok("suspend", "mnist") == "suspend of job mnist asked for\n"
    in_phase(there, "mnist", "Aborted")
    code, _, errors = returned("suspend", "mnist")
    assert (code, errors) == (1, "vcjob: mnist is suspended already (Aborted)\n")
    assert returned("wait", "mnist")[0] == ExitCode.ABORTED
    ok("resume", "mnist")
    in_phase(there, "mnist", "Running")
    assert returned("resume", "mnist")[2] == "vcjob: mnist is not suspended (Running)\n"


def test_a_job_that_its_annotation_suspended_is_resumed_by_the_command(there: Elsewhere) -> None:
    said_so = {"metadata": {"annotations": {"vcjob.dev/suspend": "true"}}}
    there.do(there.face.store.patch(JOB, "default", "mnist", said_so))
    in_phase(there, "mnist", "Aborted")
    assert ok("resume", "mnist") == "resume of job mnist asked for\n"
    in_phase(there, "mnist", "Running")
    assert returned("resume", "mnist")[2] == "vcjob: mnist is not suspended (Running)\n"


def test_a_task_is_scaled_and_it_is_said_what_that_means(there: Elsewhere) -> None:
    said = ok("scale", "mnist", "worker=3")
    assert "worker" in said
    there.until(JOB, "mnist", lambda obj: obj["status"].get("running") == 4)
    assert "many pods already" in ok("scale", "mnist", "worker=3")
    assert 'did you mean "worker"?' in error_of("scale", "mnist", "wroker=1")
    assert "is not TASK=REPLICAS" in error_of("scale", "mnist", "worker=-1")


def test_a_job_that_has_ended_is_not_scaled(there: Elsewhere) -> None:
    for pod in ("ps-0", "worker-0", "worker-1"):
        there.do(there.face.end_pod(f"mnist-{pod}"))
    in_phase(there, "mnist", "Completed")
    code, _, said = returned("scale", "mnist", "worker=3")
    assert (code, said) == (1, "vcjob: mnist has ended (Completed); there is nothing to scale\n")


def test_events_of_an_earlier_job_of_the_name_are_not_shown(there: Elsewhere) -> None:
    old = {
        "metadata": {"name": "old", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "mnist-worker-0"},
        "reason": "Ancient",
        "lastTimestamp": "2001-01-01T00:00:00Z",
    }
    there.do(there.face.store.create(EVENT, old))
    assert "Ancient" in ok("events")
    assert "Ancient" not in returned("events", "mnist")[1]


def test_deleting_waits_until_job_and_pods_are_gone(there: Elsewhere) -> None:
    assert ok("delete", "mnist") == "job mnist deleted\n"
    with pytest.raises(NotFound):
        there.do(there.face.store.get(JOB, "default", "mnist"))
    assert there.do(there.face.store.list(POD)).items == []
    assert "there is no Job" in error_of("delete", "mnist")
    assert returned("delete", "mnist", "--ignore-not-found")[0] == 0


def test_deleting_may_not_wait_and_may_choose(there: Elsewhere) -> None:
    assert "name Jobs, or choose them" in error_of("delete")
    assert returned("delete", "-l", "team=b")[2] == "vcjob: there are no such Jobs\n"
    assert ok("delete", "-l", "team=a", "--wait=false") == "job mnist is being deleted\n"


def test_a_cluster_is_used_only_when_named_and_then_it_is_told(
    there: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_kubeconfig(tmp_path / "config", there.server.url, "lab")
    monkeypatch.setenv("KUBECONFIG", str(config))
    target.engine_kubeconfig().unlink()
    assert "vcjob engine start --detach" in error_of("ls")
    told = f"vcjob: context lab ({there.server.url})\n"
    assert returned("ls", "--context", "lab")[2] == told
    monkeypatch.setenv("VCJOB_CONTEXT", "lab")
    assert returned("ls")[2] == told
    monkeypatch.delenv("VCJOB_CONTEXT")
    assert returned("ls", "--kubeconfig", str(config))[2] == told
    assert "context 'bal' is not defined" in error_of("ls", "--context", "bal")


def test_an_engine_that_is_gone_is_said_with_the_cure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        write_kubeconfig(target.engine_kubeconfig(), f"http://127.0.0.1:{bound.getsockname()[1]}")
        for command in (["ls"], ["logs", "-f", "mnist"], ["delete", "--all"]):
            with pytest.raises(target.EngineNotRunning, match="no engine is running") as caught:
                returned(*command)
            assert caught.value.exit_code == ExitCode.MACHINE_CANNOT


@pytest.mark.parametrize(
    ("command", "incomplete", "names"),
    [
        ("logs", "m", ["mnist"]),
        ("logs", "x", []),
        ("exec", "mnist/w", ["mnist/worker-0", "mnist/worker-1"]),
        ("delete", "", ["mnist"]),
        ("delete", "mnist/", []),
    ],
)
def test_shells_complete_names(
    there: Elsewhere, command: str, incomplete: str, names: list[str]
) -> None:
    completer = ShellComplete(cli, {}, "vcjob", "_VCJOB_COMPLETE")
    assert [item.value for item in completer.get_completions([command], incomplete)] == names
    target.engine_kubeconfig().unlink()
    assert completer.get_completions([command], incomplete) == []


def test_an_engine_that_refuses_us_is_not_called_absent(there: Elsewhere) -> None:
    config = target.engine_kubeconfig()
    config.write_text(config.read_text().replace(TOKEN, "wrong"))
    assert "does not know us (401)" in error_of("ls")
    config.write_text(config.read_text().replace("http:", "https:"))
    assert "no TLS with" in error_of("ls")
