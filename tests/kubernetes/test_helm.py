"""helm on the engine's API: a chart with a Job."""

import os
import subprocess

CHART = "apiVersion: v2\nname: training\nversion: 0.1.0\n"
TEMPLATE = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: "{{ .Release.Name }}", labels: {app: "{{ .Chart.Name }}"}}
spec:
  tasks:
  - name: worker
    replicas: {{ .Values.workers }}
    template:
      spec:
        restartPolicy: Never
        containers: [{name: main, image: busybox}]
"""


def test_a_chart_with_a_job_is_installed_upgraded_and_uninstalled(
    config, program, kubectl, tmp_path
):
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text(CHART)
    (chart / "values.yaml").write_text("workers: 2\n")
    (chart / "templates" / "job.yaml").write_text(TEMPLATE)
    homes = {f"HELM_{name}_HOME": str(tmp_path / name) for name in ("CACHE", "CONFIG", "DATA")}

    def helm(*arguments):
        return subprocess.run(
            [program("helm"), *arguments],
            env={**os.environ, **homes},
            capture_output=True,
            text=True,
            timeout=50,
            check=True,
        ).stdout

    helm("install", "mine", str(chart))
    assert "deployed" in helm("list")
    helm("upgrade", "mine", str(chart), "--set", "workers=3")
    replicas = "jsonpath={.spec.tasks[0].replicas}"
    assert kubectl("get", "vcjob", "mine", "-o", replicas).stdout == "3"
    helm("uninstall", "mine")
    assert kubectl("get", "vcjob", "-o", "name").stdout == ""
