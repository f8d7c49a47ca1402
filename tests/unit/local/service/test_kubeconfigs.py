"""The engine in kubeconfig files: added and removed without harm to what else is in them."""

import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from vcjob.local.service import kubeconfigs
from vcjob.local.service.kubeconfigs import KubeconfigRefused, merge, unmerge, user_kubeconfig

OURS = kubeconfigs.kubeconfig("https://127.0.0.1:7777", "PEM", "secret")
USERS: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "preferences": {"colors": True},
    "clusters": [{"name": "big", "cluster": {"server": "https://big.example.org"}}],
    "users": [{"name": "me", "user": {"exec": {"command": "login"}}}],
    "contexts": [{"name": "work", "context": {"cluster": "big", "user": "me"}}],
    "current-context": "work",
}


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_merged_and_taken_out_again_a_file_is_what_it_was(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(USERS))
    file.chmod(0o640)
    merge(file, OURS)
    merge(file, kubeconfigs.kubeconfig("https://127.0.0.1:8888", "PEM", "newer"))
    merged = read(file)
    assert merged["current-context"] == "work"
    assert [cluster["name"] for cluster in merged["clusters"]] == ["big", "vcjob"]
    assert merged["clusters"][1]["cluster"]["server"] == "https://127.0.0.1:8888"
    assert merged["users"][1]["user"] == {"token": "newer"}
    unmerge(file)
    assert read(file) == USERS
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["config"]


def test_a_file_that_is_not_there_is_made_for_the_user_alone(tmp_path: Path) -> None:
    file = tmp_path / ".kube" / "config"
    merge(file, OURS)
    assert "current-context" not in read(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_taking_out_makes_no_file(tmp_path: Path) -> None:
    unmerge(tmp_path / "config")
    assert not list(tmp_path.iterdir())


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text(yaml.safe_dump(USERS))
    link.symlink_to(real)
    merge(link, OURS)
    assert link.is_symlink()
    assert len(read(real)["clusters"]) == 2


@pytest.mark.parametrize(
    "content",
    [
        "clusters: [",
        "just text",
        "clusters: {a: b}",
        "clusters: [{name: vcjob, cluster: {server: 'https://prod.example.org'}}]",
    ],
)
def test_a_file_that_would_be_harmed_is_left_as_it_is(tmp_path: Path, content: str) -> None:
    file = tmp_path / "config"
    file.write_text(content)
    with pytest.raises(KubeconfigRefused, match="config"):
        merge(file, OURS)
    assert file.read_text() == content
    assert [path.name for path in tmp_path.iterdir()] == ["config"]


def test_an_entry_of_that_name_that_is_not_ours_is_not_taken_out(tmp_path: Path) -> None:
    file = tmp_path / "config"
    content = "clusters: [{name: vcjob, cluster: {server: 'https://prod.example.org'}}]"
    file.write_text(content)
    unmerge(file)
    assert file.read_text() == content


def test_a_file_that_another_program_changes_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, lock = tmp_path / "config", tmp_path / "config.lock"
    lock.touch()
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            lock.unlink()

    monkeypatch.setattr(kubeconfigs.time, "sleep", wait)
    merge(file, OURS)
    assert len(waits) == 3

    lock.touch()
    monkeypatch.setattr(kubeconfigs, "_LOCK_SECONDS", 0.0)
    monkeypatch.setattr(kubeconfigs.time, "sleep", lambda seconds: None)
    with pytest.raises(KubeconfigRefused, match=r"config\.lock"):
        merge(file, OURS)
    assert lock.exists()


@pytest.mark.parametrize(
    ("variable", "expected"), [("", ".kube/config"), ("/a/b:/c", "/a/b"), (":/c", "/c")]
)
def test_the_users_file_is_the_one_kubectl_changes(variable: str, expected: str) -> None:
    assert user_kubeconfig({"KUBECONFIG": variable}) == Path.home() / expected
