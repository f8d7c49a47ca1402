"""``vcjob submit``: Jobs to the engine or a cluster; ``kubectl vcjob``, which means clusters."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_runs import Manifest, job, task, write
from click.testing import CliRunner, Result
from played_cluster import TOKEN, Elsewhere, served_elsewhere

from vcjob.api.kinds import CONFIG_MAP, JOB, NAMESPACE
from vcjob.cli import target
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.main import cli
from vcjob.controller.cluster import Invalid

SLEEP = ["sleep", "1"]


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Elsewhere]:
    """A cluster that is the engine of this machine, and the kubeconfig file's context "big"."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.delenv("VCJOB_CONTEXT", raising=False)
    with served_elsewhere() as elsewhere:
        for path in (target.engine_kubeconfig(), tmp_path / "kubeconfig"):
            write_kubeconfig(path, elsewhere.server.url)
        yield elsewhere


def write_kubeconfig(path: Path, url: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    config = {
        "current-context": "big",
        "contexts": [{"name": "big", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": TOKEN}}],
    }
    path.write_text(yaml.safe_dump(config))


def submit(*arguments: str | Path, name: str = "vcjob") -> Result:
    return CliRunner().invoke(
        cli, ["submit", *map(str, arguments)], prog_name=name, standalone_mode=False
    )


def code(result: Result) -> Any:
    if result.exception:
        raise result.exception
    return result.return_value


def phase(obj: Manifest) -> str:
    return str((obj.get("status") or {}).get("state", {}).get("phase", ""))


def test_the_engine_gets_the_jobs_and_the_objects_beside_them(
    there: Elsewhere, tmp_path: Path
) -> None:
    beside = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    result = submit(write(tmp_path, job("mnist", task("worker", SLEEP)), beside))
    assert code(result) == ExitCode.COMPLETED
    assert result.stdout == "mnist\n"
    assert "follow mnist with vcjob logs -f mnist, see it with vcjob describe mnist" in (
        result.stderr
    )
    there.until(JOB, "mnist", lambda obj: phase(obj) == "Running")
    assert there.do(there.face.store.get(CONFIG_MAP, "default", "settings"))


def test_a_cluster_is_named_and_its_options_come_back_in_the_hints(
    there: Elsewhere, tmp_path: Path
) -> None:
    there.do(there.face.store.create(NAMESPACE, {"metadata": {"name": "ml"}}))
    manifest = write(tmp_path, job("mnist", task("worker", [])))  # the image has a program
    manifest.write_text(manifest.read_text().replace("command: []", "args: [a]"))
    result = submit(manifest, "--context", "big", "-n", "ml")
    assert code(result) == ExitCode.COMPLETED
    assert "vcjob: context big (http://127.0.0.1:" in result.stderr
    assert "vcjob logs -f mnist --context big -n ml" in result.stderr
    assert there.do(there.face.store.get(JOB, "ml", "mnist"))


def test_what_pods_of_this_machine_would_not_find_is_refused_before(
    there: Elsewhere, tmp_path: Path
) -> None:
    manifest = write(tmp_path, job("mnist", task("worker", ["no-such-program"])))
    result = submit(manifest)
    assert code(result) == ExitCode.MANIFEST_REFUSED
    assert "no-such-program" in result.stderr
    assert not there.do(there.face.store.list(JOB)).items
    assert code(submit(manifest, "--context", "big")) == ExitCode.COMPLETED


def test_a_wrong_manifest_and_with_strict_a_warning_reach_no_server(
    there: Elsewhere, tmp_path: Path
) -> None:
    wrong = write(tmp_path, job("mnist", task("worker", SLEEP), minAvailable=7), name="wrong.yaml")
    assert code(submit(wrong)) == ExitCode.MANIFEST_REFUSED
    empty = write(tmp_path, job("mnist", task("worker", SLEEP, replicas=0), minAvailable=0))
    assert code(submit(empty, "--strict")) == ExitCode.MANIFEST_REFUSED
    assert not there.do(there.face.store.list(JOB)).items


def test_a_job_that_is_there_stays_as_it_is(there: Elsewhere, tmp_path: Path) -> None:
    manifest = write(tmp_path, job("mnist", task("worker", SLEEP)))
    assert code(submit(manifest)) == ExitCode.COMPLETED
    result = submit(manifest)
    assert code(result) == ExitCode.FAILED
    assert "Job mnist is there already" in result.stderr
    waits = {"metadata": {"finalizers": ["example.org/waits"]}}
    there.do(there.face.store.patch(JOB, "default", "mnist", waits))
    there.do(there.face.store.delete(JOB, "default", "mnist"))
    result = submit(manifest)
    assert code(result) == ExitCode.FAILED
    assert "Job mnist is being deleted: create it again when that is done" in result.stderr


def test_what_the_server_refuses_is_shown_at_the_line_it_is_about(
    there: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = write(tmp_path, job("mnist", task("worker", SLEEP), queue="closed"))

    async def create(self: Any, kind: Any, obj: Any) -> Any:
        raise Invalid(
            'admission webhook "validatejob.volcano.sh" denied the request: '
            "spec.queue: the queue closed takes no Jobs"
        )

    monkeypatch.setattr("vcjob.kubernetes.cluster.KubernetesCluster.create", create)
    result = submit(manifest, "--context", "big")
    assert code(result) == ExitCode.MANIFEST_REFUSED
    lines = manifest.read_text().splitlines()
    number = next(index for index, line in enumerate(lines, 1) if "queue: closed" in line)
    [said] = [line for line in result.stderr.splitlines() if "was refused" in line]
    assert said.startswith(f"{manifest}:{number}:")
    assert "the queue closed takes no Jobs" in said


@pytest.mark.parametrize(("exit_code", "expected"), [(0, 0), (3, 1)])
def test_with_wait_the_exit_code_is_that_of_the_job(
    there: Elsewhere, tmp_path: Path, exit_code: int, expected: int
) -> None:
    manifest = write(tmp_path, job("mnist", task("worker", SLEEP)))

    def be_the_node() -> None:
        there.until(JOB, "mnist", lambda obj: phase(obj) == "Running")
        there.do(there.face.end_pod("mnist-worker-0", exit_code))

    node = threading.Thread(target=be_the_node)
    node.start()
    result = submit(manifest, "--wait", "--timeout", "30s")
    node.join()
    assert code(result) == expected


def test_the_jobs_for_programs(there: Elsewhere, tmp_path: Path) -> None:
    first = write(tmp_path, job("a", task("worker", SLEEP)), name="a.yaml")
    assert json.loads(submit(first, "-o", "json").stdout)["metadata"]["uid"]
    second = write(tmp_path, job("b", task("worker", SLEEP)), name="b.yaml")
    assert submit(second, "-o", "name").stdout == "job.batch.volcano.sh/b\n"
    both = [write(tmp_path, job(name, task("worker", SLEEP)), name=f"{name}.yaml") for name in "cd"]
    listed = yaml.safe_load(submit(*both, "-o", "yaml").stdout)
    assert [one["metadata"]["name"] for one in listed["items"]] == ["c", "d"]


def test_as_a_plug_in_of_kubectl_the_current_context_is_meant(
    there: Elsewhere, tmp_path: Path
) -> None:
    target.engine_kubeconfig().unlink()  # no engine runs
    manifest = write(tmp_path, job("mnist", task("worker", ["only-in-the-image"])))
    result = submit(manifest, name="kubectl vcjob")
    assert code(result) == ExitCode.COMPLETED
    assert "kubectl vcjob: context big (http://" in result.stderr
    assert "follow mnist with kubectl vcjob logs -f mnist, " in result.stderr
    with pytest.raises(target.EngineNotRunning):
        code(submit(manifest))


def test_the_plug_in_calls_itself_as_its_users_do() -> None:
    result = CliRunner().invoke(cli, ["submit", "--help"], prog_name="kubectl vcjob")
    assert result.stdout.startswith("Usage: kubectl vcjob submit [OPTIONS] FILE...")


def test_a_time_limit_is_for_those_who_wait(there: Elsewhere, tmp_path: Path) -> None:
    result = submit(write(tmp_path, job("mnist", task("worker", SLEEP))), "--timeout", "1s")
    assert "--timeout needs --wait" in str(result.exception)
