from pathlib import Path

from vcjob.local.sandbox.etc_secrets import find_secrets


def found(directory: Path) -> set[str]:
    return {path.removeprefix(f"{directory}/") for path in find_secrets(str(directory))}


def test_what_not_everybody_may_read_is_secret_at_any_depth(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir(mode=0o755)
    for name in ("open", "closed", "below/closed"):
        (tmp_path / name).touch(mode=0o644 if name == "open" else 0o640)
    (tmp_path / "private").mkdir(mode=0o700)
    (tmp_path / "private" / "inner").touch(mode=0o600)
    assert found(tmp_path) == {"closed", "below/closed", "private"}


def test_keys_are_secret_by_name_whatever_their_mode(tmp_path: Path) -> None:
    (tmp_path / "server.key").touch(mode=0o644)
    assert found(tmp_path) == {"server.key"}


def test_links_are_left_to_what_they_lead_to(tmp_path: Path) -> None:
    (tmp_path / "server.key").symlink_to("/nowhere")
    assert found(tmp_path) == set()


def test_a_directory_that_cannot_be_read_has_nothing_to_hide(tmp_path: Path) -> None:
    assert found(tmp_path / "missing") == set()
