"""kubectl with Jobs that run on a real engine, from apply to delete."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.local

PHASE = "jsonpath={.status.state.phase}"
PHASES = "custom-columns=P:.status.state.phase"
JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: NAME}
spec:
  plugins: {svc: [], env: []}
  tasks:
  - name: worker
    replicas: 2
    template:
      spec:
        restartPolicy: Never
        terminationGracePeriodSeconds: 1
        containers:
        - name: main
          image: unused
          command: [sh, -c, "echo I am $VC_TASK_INDEX; SCRIPT"]
"""
Kubectl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def config(engine_kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In place of the server without pods that ``kubectl`` has elsewhere."""
    monkeypatch.setenv("KUBECONFIG", str(engine_kubeconfig))
    return engine_kubeconfig


def manifest(name: str, script: str) -> str:
    return JOB.replace("NAME", name).replace("SCRIPT", script)


def test_a_job_is_watched_waited_for_and_read(
    kubectl: Kubectl, config: Path, program: Callable[[str], Path]
) -> None:
    with subprocess.Popen(
        [program("kubectl"), "get", "vcjob", "-w", "--no-headers", "-o", PHASES],
        stdout=subprocess.PIPE,
        text=True,
    ) as watch:
        kubectl("apply", "-f", "-", given=manifest("short", "true"))
        kubectl("wait", "vcjob/short", f"--for={PHASE}=Completed", "--timeout=30s")
        assert watch.stdout is not None
        phases = [watch.stdout.readline().strip()]
        while phases[-1] != "Completed":
            phases.append(watch.stdout.readline().strip())
        watch.terminate()
    order = ["<none>", "Pending", "Running", "Completed"]
    assert phases == sorted(phases, key=order.index)

    selected = kubectl("logs", "-l", "volcano.sh/job-name=short", "--prefix").stdout
    assert sorted(selected.splitlines()) == [
        f"[pod/short-worker-{number}/main] I am {number}" for number in range(2)
    ]
    told = kubectl("events", "--for", "vcjob/short").stdout
    assert "JobCompleted" in told
    assert "JobCompleted" in kubectl("describe", "vcjob", "short").stdout
    kubectl("delete", "vcjob", "short", "--wait", "--timeout=30s")
    assert kubectl("get", "pods", "-l", "volcano.sh/job-name=short", "-o", "name").stdout == ""


def test_pods_of_a_running_job_have_addresses_and_go_with_it(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", "-", given=manifest("long", "exec sleep 600"))
    kubectl("wait", "vcjob/long", f"--for={PHASE}=Running", "--timeout=30s")
    wide = kubectl("get", "pods", "-l", "volcano.sh/job-name=long", "-o", "wide").stdout
    assert len({line.split()[5] for line in wide.splitlines()[1:]}) == 2  # their addresses
    kubectl("delete", "vcjob", "long", "--wait", "--timeout=30s")
    kubectl("wait", "pod", "-l", "volcano.sh/job-name=long", "--for=delete", "--timeout=30s")
