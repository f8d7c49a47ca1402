"""What the options of ``vcjob operator`` become."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from vcjob.cli import operator_run
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.operator import operator
from vcjob.kubernetes import kubeconfig
from vcjob.kubernetes.operator_options import OperatorOptions
from vcjob.kubernetes.server import Server


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[OperatorOptions]:
    """Options of the operators that would have run."""
    found: list[OperatorOptions] = []

    def note(server: Server, options: OperatorOptions, form: str, level: str) -> ExitCode:
        found.append(options)
        return ExitCode.COMPLETED

    monkeypatch.setattr(operator_run, "run_operator", note)
    in_pod = Server(url="https://10.96.0.1", name="in-cluster", namespace="own")
    monkeypatch.setattr(kubeconfig, "in_cluster_server", lambda: in_pod)
    return found


@pytest.fixture
def elsewhere(tmp_path: Path) -> str:
    """A kubeconfig file whose context is called as servers are that pods find by themselves."""
    path = tmp_path / "config"
    name = "in-cluster"
    content = {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


@pytest.mark.parametrize(
    ("host", "named", "waits", "namespace"),
    [
        ("10.96.0.1", False, True, "own"),
        ("10.96.0.1", True, True, "vcjob-system"),
        ("", True, False, "vcjob-system"),
    ],
    ids=["a pod", "a pod with a kubeconfig file", "elsewhere"],
)
def test_in_a_pod_it_waits_for_volcano_s_controller_elsewhere_it_ends(
    started: list[OperatorOptions], elsewhere: str, host: str, named: bool, waits: bool,
    namespace: str,
) -> None:  # fmt: skip
    environment = {"KUBERNETES_SERVICE_HOST": host}
    options = ["--kubeconfig", elsewhere] if named else []
    assert CliRunner(env=environment).invoke(operator, options).exit_code == 0
    assert (started[0].waits_for_volcano, started[0].lease_namespace) == (waits, namespace)


@pytest.mark.parametrize(
    ("arguments", "namespace"), [((), "volcano-system"), (("--volcano-namespace=batch",), "batch")]
)
def test_volcano_s_namespace_is_told(
    started: list[OperatorOptions], arguments: tuple[str, ...], namespace: str
) -> None:
    assert CliRunner().invoke(operator, arguments).exit_code == 0
    assert started[0].volcano_namespace == namespace


def test_neither_a_pod_nor_a_kubeconfig_is_said_with_the_options_that_help(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    done = CliRunner().invoke(operator, [])
    assert done.exit_code == 1
    assert "with --kubeconfig or --context" in done.output


@pytest.mark.parametrize("rate", ["nan", "inf", "-1"])
def test_what_is_no_rate_is_refused(started: list[OperatorOptions], rate: str) -> None:
    done = CliRunner().invoke(operator, ["--api-rate", rate])
    assert (done.exit_code, started) == (2, [])
    assert "Invalid value for '--api-rate'" in done.output
