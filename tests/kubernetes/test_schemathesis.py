"""Requests made from the OpenAPI that is served: schemathesis, for a bounded time.

It makes right and wrong ones out of every operation's schema, which no test of ours names. What
is near to a right object is tried by tests/property/test_apiserver.py, with other means.
"""

import asyncio
import base64
import subprocess
from pathlib import Path

import client_packages
import pytest
import yaml

from vcjob.api.kinds import CONFIG_MAP, JOB, POD
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.kubeconfig import read_kubeconfig

MOST_SECONDS = 20
# Watches end when their time is over, not when they have answered.
PARAMETERS = """
[parameters]
"query.watch" = false
"path.namespace" = "default"
"path.name" = "a"
"""
NAMED = {"metadata": {"name": "a", "namespace": "default"}}
POD_SPEC = {"containers": [{"name": "main", "image": "i"}]}
OBJECTS = (
    (CONFIG_MAP, {**NAMED, "data": {"x": "1"}}),
    (POD, {**NAMED, "spec": POD_SPEC}),
    (JOB, {**NAMED, "spec": {"tasks": [{"name": "t", "template": {"spec": POD_SPEC}}]}}),
)


@pytest.mark.clients
def test_no_request_makes_the_server_fail(
    config: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    if not pytestconfig.getoption("--clients"):
        pytest.skip("needs schemathesis: pytest tests/kubernetes --clients")
    asyncio.run(_create_objects(config))
    content = yaml.safe_load(config.read_text())
    cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
    address = cluster["server"]
    authority = base64.b64decode(cluster["certificate-authority-data"])
    (tmp_path / "authority.pem").write_bytes(authority)
    (tmp_path / "schemathesis.toml").write_text(PARAMETERS)
    done = subprocess.run(
        [
            client_packages.schemathesis(),
            "--config-file=schemathesis.toml",
            "run",
            f"{address}/openapi/v2",
            f"--url={address}",
            f"--header=Authorization: Bearer {user['token']}",
            "--tls-verify=authority.pem",
            "--checks=not_a_server_error",
            "--phases=fuzzing",
            "--mode=all",
            f"--max-time={MOST_SECONDS}",
            "--max-examples=4",
            "--request-timeout=10",
            "--suppress-health-check=all",
            "--warnings=off",
            "--no-color",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


async def _create_objects(config: Path) -> None:
    async with KubernetesCluster.of(read_kubeconfig((config,))) as cluster:
        for kind, obj in OBJECTS:
            await cluster.create(kind, obj)
