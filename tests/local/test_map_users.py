"""Whose numbers pods have: those of whoever started vcjob, or with ``--map-users`` unprivileged."""

import os
from pathlib import Path

import pytest
from cli_runs import Manifest, job, run, task, write

from vcjob.local.node.identity import UNPRIVILEGED_BASE

pytestmark = pytest.mark.local

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root's number can be moved")


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A directory that nobody but root may enter, as root's home is; the state is kept below it."""
    directory = tmp_path / "closed"
    directory.mkdir(mode=0o700)
    return directory


def with_volumes(script: str, **security: int) -> list[Manifest]:
    worker = task("worker", ["sh", "-ec", script])
    spec = worker["template"]["spec"]
    spec["securityContext"] = security
    spec["volumes"] = [
        {"name": "disk", "emptyDir": {}},
        {"name": "memory", "emptyDir": {"medium": "Memory"}},
        {"name": "config", "configMap": {"name": "config"}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "claim"}},
    ]
    spec["containers"][0]["volumeMounts"] = [
        *({"name": name, "mountPath": f"/{name}"} for name in ("disk", "memory", "claim")),
        {"name": "config", "mountPath": "/config", "subPath": "key"},
    ]
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "config"},
            "data": {"key": "configured"},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "claim"},
            "spec": {"accessModes": ["ReadWriteOnce"]},
        },
        job("demo", worker),
    ]


@as_root
@pytest.mark.parametrize("user", [0, 1000])
def test_pods_have_unprivileged_numbers_and_all_their_volumes(closed: Path, user: int) -> None:
    shown = closed / "shown"
    shown.mkdir()
    shown.chmod(0o777)
    script = (
        "id -u; touch /disk/f /memory/f /claim/f /shown/f; cat /config; echo; "
        "python -c 'print(6 * 7)'; getent hosts $(hostname) >/dev/null && echo found"
    )
    manifest = write(closed, *with_volumes(script, runAsUser=user, fsGroup=2000))
    ended = run(closed, "run", "--map-users", "-v", f"{shown}:/shown", manifest)
    assert ended.code == 0, ended
    assert ended.lines("worker-0") == [str(user), "configured", "42", "found"]
    assert (shown / "f").stat().st_uid == UNPRIVILEGED_BASE + user
    state = closed / "state" / "vcjob"
    assert (state / "claims-map-users" / "default" / "claim" / "f").exists()
    assert [*state.glob("runs/*/pods")] == []


@as_root
def test_a_pod_cannot_read_what_only_root_may(closed: Path) -> None:
    (closed / "secret").write_text("x")
    (closed / "secret").chmod(0o600)
    manifest = write(closed, job("demo", task("worker", ["cat", "/secret"])))
    assert run(closed, "run", "-v", f"{closed / 'secret'}:/secret", manifest).code == 0
    ended = run(closed, "run", "--map-users", "-v", f"{closed / 'secret'}:/secret", manifest)
    assert ended.code == 1, ended
    assert "Permission denied" in ended.out


def test_what_a_pod_reads_and_writes_is_that_of_whoever_started_vcjob(tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    shown.mkdir(mode=0o700)
    (shown / "own").write_text("mine\n")
    (shown / "own").chmod(0o600)
    script = "cat /shown/own; echo made > /shown/made"
    manifest = write(tmp_path, job("demo", task("worker", ["sh", "-ec", script])))
    ended = run(tmp_path, "run", "-v", f"{shown}:/shown", manifest)
    assert ended.code == 0, ended
    assert ended.lines("worker-0") == ["mine"]
    made = (shown / "made").stat()
    assert (made.st_uid, made.st_gid) == (os.geteuid(), os.getegid())


@pytest.mark.skipif(os.geteuid() == 0, reason="for those who are not root")
def test_others_than_root_are_told_that_they_have_nothing_to_move(tmp_path: Path) -> None:
    manifest = write(tmp_path, job("demo", task("worker", ["true"])))
    ended = run(tmp_path, "run", "--map-users", manifest)
    assert ended.code == 2, ended
    assert "--map-users is for root" in ended.err
