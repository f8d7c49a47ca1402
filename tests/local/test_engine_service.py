"""The engine as a process of its own: what survives its end, and what does not."""

import asyncio
import contextlib
import os
import select
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_runs import Ended, Manifest, environment, job, run, start, task, write

from vcjob.api.kinds import CONFIG_MAP, EVENT, JOB, POD, SERVICE, Kind
from vcjob.api.types import Object
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.kubeconfig import read_kubeconfig

pytestmark = pytest.mark.local

WAITS = (
    "sh",
    "-c",
    "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done",
)
EVICTED = [{"event": "PodEvicted", "action": "AbortJob"}]


class Service:
    """The engine of one test's state directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.home = Path(environment(directory)["XDG_STATE_HOME"]) / "vcjob" / "engine"

    def vcjob(self, *arguments: str | Path) -> Ended:
        return run(self.directory, "engine", *arguments)

    def start(self, *options: str | Path) -> None:
        started = self.vcjob("start", "--detach", *options)
        assert started.code == 0, started

    @property
    def pid(self) -> int:
        return int((self.home / "lock").read_text())

    def kill(self) -> None:
        """End it as the kernel does when memory runs out, and wait until it is gone."""
        process = os.pidfd_open(self.pid)
        os.kill(self.pid, signal.SIGKILL)
        select.select([process], [], [])
        os.close(process)

    def ask(self, question: Callable[[KubernetesCluster], Any]) -> Any:
        async def asking() -> Any:
            server = read_kubeconfig((self.home / "kubeconfig",))
            async with KubernetesCluster.of(server) as cluster:
                return await question(cluster)

        return asyncio.run(asyncio.wait_for(asking(), 30))

    def create(self, kind: Kind, obj: Manifest) -> Object:
        metadata = {"namespace": "default", **obj["metadata"]}
        return self.ask(lambda cluster: cluster.create(kind, {**obj, "metadata": metadata}))

    def get(self, kind: Kind, name: str) -> Object:
        return self.ask(lambda cluster: cluster.get(kind, "default", name))

    def until(self, kind: Kind, name: str, reached: Callable[[Object], bool]) -> Object:
        """The object as soon as it is so."""

        async def waiting(cluster: KubernetesCluster) -> Object:
            listed = await cluster.list(kind, "default")
            for obj in listed.items:
                if obj["metadata"]["name"] == name and reached(obj):
                    return obj
            async for event in cluster.watch(kind, listed.resource_version, "default"):
                if event.object["metadata"].get("name") == name and reached(event.object):
                    return event.object
            raise AssertionError("the watch ended")

        return self.ask(waiting)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    tested = Service(tmp_path)
    yield tested
    ended = tested.vcjob("stop", "--now")
    assert ended.code == 0, ended


def phase(name: str) -> Callable[[Object], bool]:
    """Whether a Job, or a pod, is in a phase."""

    def reached(obj: Object) -> bool:
        status = obj.get("status") or {}
        return name in (status.get("phase"), (status.get("state") or {}).get("phase"))

    return reached


def is_ready(obj: Object) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def test_it_starts_once_tells_where_it_is_and_stops_without_a_trace(service: Service) -> None:
    service.start()
    status = service.vcjob("status")
    assert status.code == 0
    shown = dict(line.split(":", 1) for line in status.out.splitlines())
    assert shown["kubeconfig"].strip() == str(service.home / "kubeconfig")
    assert shown["jobs"].strip() == "none"
    for path in service.home.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path

    again = service.vcjob("start", "--detach")
    assert (again.code, str(service.pid) in again.err) == (1, True), again

    process = os.pidfd_open(service.pid)
    assert service.vcjob("stop").code == 0
    assert select.select([process], [], [], 0)[0]  # it has ended
    os.close(process)
    assert not list((service.home.parent / "runs").iterdir())
    assert not (service.home / "kubeconfig").exists()
    assert service.vcjob("stop").code == 0
    assert service.vcjob("status").code == 1


def listening(pid: int) -> list[str]:
    """The addresses at which a process takes connections of TCP, as the kernel writes them."""
    descriptors = Path(f"/proc/{pid}/fd").iterdir()
    sockets = {os.readlink(one) for one in descriptors if one.exists() or one.is_symlink()}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                found.append(fields[1].partition(":")[0])
    return found


@pytest.mark.parametrize(
    ("options", "addresses", "warned"),
    [((), ["0100007F"], False), (("--listen", "0.0.0.0"), ["00000000"], True)],
)
def test_only_this_machine_reaches_it_unless_that_is_asked_for(
    service: Service, options: tuple[str, ...], addresses: list[str], warned: bool
) -> None:
    started = service.vcjob("start", "--detach", *options)
    assert started.code == 0, started
    assert listening(service.pid) == addresses
    assert ("can be reached from other machines" in started.err) is warned


def test_its_token_stands_in_files_of_the_user_alone(service: Service) -> None:
    service.start()
    service.create(POD, {"metadata": {"name": "runs"}, **pod(WAITS)})
    service.until(POD, "runs", phase("Running"))
    token = (service.home / "token").read_text().strip().encode()
    assert len(token) > 20
    seen = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile, or is somebody else's
            seen[process] = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
    assert Path(f"/proc/{service.pid}") in seen
    assert [process for process, said in seen.items() if token in said] == []
    assert token not in (service.home / "engine.log").read_bytes()


def test_a_service_with_a_selector_gives_names_to_pods_made_directly(service: Service) -> None:
    service.start()
    chosen = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    service.create(SERVICE, {"metadata": {"name": "web"}, "spec": chosen})
    made = pod(WAITS)
    service.create(POD, {"metadata": {"name": "one", "labels": {"app": "web"}}, **made})
    address = service.until(POD, "one", is_ready)["status"]["podIP"]
    command = (
        f"until getent hosts web.default.svc.cluster.local; do sleep 0.1; done; echo {address}"
    )
    service.create(POD, {"metadata": {"name": "asks"}, **pod(("sh", "-c", command))})
    service.until(POD, "asks", phase("Succeeded"))
    told, wanted = (service.home / "logs/default_asks/main/0.log").read_text().splitlines()
    assert told.split()[0] == wanted


def test_detached_it_keeps_nothing_open_that_its_caller_waits_for(service: Service) -> None:
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "vcjob", "engine", "start", "--detach"],
        env=environment(service.directory), stdout=writer, stderr=writer, pass_fds=[writer],
    )  # fmt: skip
    os.close(writer)
    with open(reader, "rb") as output:
        assert b"serves at" in output.read()  # to the end
    assert process.wait() == 0
    assert service.vcjob("status").code == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_in_the_foreground_a_signal_ends_it(service: Service, number: signal.Signals) -> None:
    process = start(service.directory, "engine", "start")
    assert process.stderr is not None
    assert b"serves at https://127.0.0.1:" in process.stderr.readline()
    process.send_signal(number)
    assert Ended(process).code == 0


def test_killed_it_has_lost_nothing_and_policies_act_on_its_pods(service: Service) -> None:
    service.start()
    service.create(JOB, job("short", task("only", ("sh", "-c", "echo done"))))
    service.until(JOB, "short", phase("Completed"))
    service.create(JOB, job("long", task("only", WAITS), policies=EVICTED))
    service.until(POD, "long-only-0", phase("Running"))
    before = service.create(CONFIG_MAP, {"metadata": {"name": "kept"}, "data": {"a": "b"}})

    service.kill()
    assert service.vcjob("status").code == 1
    service.start()

    assert service.get(CONFIG_MAP, "kept") == before
    assert phase("Completed")(service.get(JOB, "short"))
    assert (service.home / "logs/default_short-only-0/main/0.log").read_text() == "done\n"
    after = service.create(CONFIG_MAP, {"metadata": {"name": "later"}})["metadata"]
    assert int(after["resourceVersion"]) > int(before["metadata"]["resourceVersion"])
    service.until(JOB, "long", phase("Aborted"))
    events = service.ask(lambda cluster: cluster.list(EVENT, "default")).items
    assert {"short", "long"} <= {event["involvedObject"]["name"] for event in events}


def test_pods_of_a_killed_engine_have_failed_with_a_reason(service: Service) -> None:
    service.start()
    service.create(POD, {"metadata": {"name": "alone"}, **pod(WAITS)})
    service.until(POD, "alone", phase("Running"))
    service.kill()
    service.start()
    status = service.get(POD, "alone")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "NodeLost")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137


def test_a_pod_that_waits_for_a_config_map_outlives_a_killed_engine(service: Service) -> None:
    service.start()
    waits = pod(("sh", "-c", 'test "$answer" = 42'))
    waits["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "late"}}]
    before = service.create(POD, {"metadata": {"name": "alone"}, **waits})
    service.until(POD, "alone", lacks_a_config_map)
    service.kill()
    service.start()
    service.until(POD, "alone", lacks_a_config_map)
    service.create(CONFIG_MAP, {"metadata": {"name": "late"}, "data": {"answer": "42"}})
    after = service.until(POD, "alone", phase("Succeeded"))
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


def lacks_a_config_map(waiting: Object) -> bool:
    containers = (waiting.get("status") or {}).get("containerStatuses") or ()
    reasons = {one["state"].get("waiting", {}).get("reason") for one in containers}
    return reasons == {"CreateContainerConfigError"}


def test_stopped_it_gives_pods_their_grace(service: Service) -> None:
    service.start()
    service.create(POD, {"metadata": {"name": "alone"}, **pod(WAITS)})
    service.until(POD, "alone", phase("Running"))
    assert service.vcjob("stop").code == 0
    assert (service.home / "logs/default_alone/main/0.log").read_text() == "up\nbye\n"
    service.start()
    status = service.get(POD, "alone")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "Terminated")


def test_a_users_kubeconfig_has_the_engine_as_long_as_it_runs(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = service.directory / "users"
    file.write_text("current-context: mine\ncontexts: [{name: mine, context: {cluster: c}}]\n")
    file.chmod(0o640)
    monkeypatch.setenv("KUBECONFIG", str(file))
    service.start("--merge")
    server = read_kubeconfig((file,), "vcjob")
    assert server.url.startswith("https://127.0.0.1:")
    assert yaml.safe_load(file.read_text())["current-context"] == "mine"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    service.kill()
    assert service.vcjob("stop").code == 0
    left = yaml.safe_load(file.read_text())
    assert [context["name"] for context in left["contexts"]] == ["mine"]
    assert not left["users"]


def test_a_port_that_is_taken_is_named(service: Service) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = service.vcjob("start", "--detach", "--listen", f"127.0.0.1:{port}")
    assert ended.code == 1
    assert f"port {port}" in ended.err
    assert "--listen" in ended.err


def pod(command: tuple[str, ...]) -> Object:
    container = {"name": "main", "image": "unused", "command": list(command)}
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}


def test_run_detached_hands_jobs_to_the_engine_and_starts_it_when_needed(service: Service) -> None:
    for name in ("first", "second"):
        manifest = write(service.directory, job(name, task("only", ("sh", "-c", "echo done"))))
        ended = run(service.directory, "run", "--detach", manifest)
        assert (ended.code, ended.out) == (0, f"{name}\n"), ended
        assert f"vcjob logs -f {name}" in ended.err
        service.until(JOB, name, phase("Completed"))
    again = run(service.directory, "run", "--detach", manifest)
    assert (again.code, "second is there already" in again.err) == (1, True), again
    bound = run(service.directory, "run", "--detach", "-v", "/tmp:/data", manifest)
    assert (bound.code, "vcjob engine start" in bound.err) == (2, True), bound


def test_objects_of_a_job_have_the_defaults_of_those_that_clients_make(service: Service) -> None:
    service.start()
    service.create(JOB, job("j", task("only", ("sleep", "600"))))
    pod_made = service.until(POD, "j-only-0", phase("Running"))
    made = service.create(POD, {"metadata": {"name": "own"}, **pod(("sleep", "600"))})
    assert made["spec"].keys() <= pod_made["spec"].keys()
    assert made["spec"]["containers"][0].keys() <= pod_made["spec"]["containers"][0].keys()
    headless = service.get(SERVICE, "j")["spec"]
    assert (headless["type"], headless["sessionAffinity"]) == ("ClusterIP", "None")


def test_run_detached_makes_the_checks_of_run_with_the_same_words(service: Service) -> None:
    unseen = task("unseen", ("sh", "/elsewhere/train.sh"))
    unseen["template"]["spec"]["volumes"] = [{"name": "v", "hostPath": {"path": "/elsewhere"}}]
    idle = task("idle", ("true",), 0, minAvailable=0)
    idle["template"]["spec"]["hostNetwork"] = True
    refused = write(service.directory, job("refused", unseen), name="refused.yaml")
    warned = write(service.directory, job("warned", idle, minAvailable=0), name="warned.yaml")
    for arguments in ((refused,), ("--strict", warned)):
        followed, handed = (
            run(service.directory, "run", *how, *arguments) for how in ((), ("--detach",))
        )
        assert (handed.code, handed.err) == (3, followed.err), handed
        assert "nothing was started" in handed.err
        assert service.vcjob("status").code == 1  # not even the engine
    handed = run(service.directory, "run", "--detach", warned)
    assert (handed.code, "hostNetwork" in handed.err, handed.out) == (0, True, "warned\n"), handed


def test_run_detached_sees_what_the_engine_that_runs_shows_to_pods(service: Service) -> None:
    script = service.directory / "programs" / "train.sh"
    script.parent.mkdir()
    script.write_text("echo trained\n")
    show = ("-v", f"{script.parent}:/programs")
    for name, options, code in (("a", show, 0), ("b", (), 0), ("c", show, 0)):
        manifest = write(
            service.directory,
            job(name, task("only", ("sh", "/programs/train.sh"))),
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}},
        )
        ended = run(service.directory, "run", "--detach", *options, manifest)
        assert ended.code == code, ended
        assert ("ConfigMap kept is there already" in ended.err) == (name != "a"), ended
        service.until(JOB, name, phase("Completed"))
    assert service.vcjob("stop").code == 0
    refused = run(service.directory, "run", "--detach", manifest)
    assert (refused.code, "/programs/train.sh is not visible" in refused.err) == (3, True), refused


def test_run_detached_takes_namespaces_and_replicas_as_run_does(service: Service) -> None:
    manifest = job("elsewhere", task("only", ("true",)))
    manifest["metadata"]["namespace"] = "team"
    path = write(service.directory, manifest)
    ended = run(service.directory, "run", "--detach", "--scale", "only=3", path)
    assert (ended.code, ended.out) == (0, "elsewhere\n"), ended
    assert "namespace team is made" in ended.err
    assert "vcjob logs -f elsewhere -n team" in ended.err
    listed = run(service.directory, "get", "pods", "-n", "team", "-o", "name")
    assert len(listed.out.split()) == 3, listed


def test_started_as_a_service_it_gives_pods_what_its_options_say(service: Service) -> None:
    (service.directory / "data").mkdir()
    (service.directory / "data" / "file").write_text("shown\n")
    service.start("-v", f"{service.directory}/data:/data:ro")
    service.create(POD, {"metadata": {"name": "reads"}, **pod(("cat", "/data/file"))})
    service.until(POD, "reads", phase("Succeeded"))
    assert (service.home / "logs/default_reads/main/0.log").read_text() == "shown\n"
