"""examples/plugin/ as its users have it: installed as a package beside vcjob."""

import os
from pathlib import Path

import pytest
from cli_runs import run
from example_plugin import EXAMPLE, install_example

MANIFEST = EXAMPLE / "job.yaml"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with the installed example."""
    return install_example(tmp_path_factory.mktemp("example"))


@pytest.fixture
def with_example(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(site), os.environ.get("PYTHONPATH", ""))))


def changed(directory: Path, before: str, after: str) -> Path:
    path = directory / "job.yaml"
    text = MANIFEST.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    return path


def test_the_plugin_has_less_than_40_lines() -> None:
    [module] = EXAMPLE.glob("*.py")
    assert len(module.read_text().splitlines()) < 40


def test_without_the_package_the_job_is_refused(tmp_path: Path) -> None:
    ended = run(tmp_path, "validate", MANIFEST)
    assert ended.code == 3, ended
    assert 'there is no plugin "torchrun"' in ended.out


@pytest.mark.usefixtures("with_example")
def test_the_plugin_is_listed_with_its_package(tmp_path: Path) -> None:
    ended = run(tmp_path, "plugins")
    assert ended.code == 0, ended
    assert "torchrun (vcjob-torchrun 1.0)" in ended.out
    assert "--port=int" in ended.out


@pytest.mark.usefixtures("with_example")
@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("--port=29400", "--port=29400", ""),
        ("--port=29400", "--prot=29400", "did you mean --port?"),
        ("--port=29400", "--task=trainer", 'no task is called "trainer"'),
        ("--port=29400", "--port=99999", "--port=99999 is no port"),
    ],
)
def test_validate_asks_the_plugin(tmp_path: Path, before: str, after: str, says: str) -> None:
    ended = run(tmp_path, "validate", "--strict", changed(tmp_path, before, after))
    assert ended.code == (3 if says else 0), ended
    assert says in ended.out


@pytest.mark.usefixtures("with_example")
def test_render_shows_what_it_adds_and_the_plugin_that_it_needs(tmp_path: Path) -> None:
    ended = run(tmp_path, "render", MANIFEST)
    assert ended.code == 0, ended
    assert "name: PET_MASTER_ADDR\n      value: train-worker-0.train\n" in ended.out
    assert "kind: Service\n" in ended.out


@pytest.mark.local
@pytest.mark.usefixtures("with_example")
def test_pods_get_what_it_adds(tmp_path: Path) -> None:
    ended = run(tmp_path, "run", MANIFEST)
    assert ended.code == 0, ended
    for rank in range(3):
        [line] = ended.lines(f"worker-{rank}")
        assert line == f"node {rank} of 3 meets at train-worker-0.train:29400"


@pytest.mark.local
def test_a_package_that_is_broken_does_not_disturb_jobs_that_do_not_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    information = site / "bad-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: bad\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[vcjob.plugins]\ntorchrun = bad:PLUGIN\n")
    (site / "bad.py").write_text("raise SystemExit('I break everything')")
    monkeypatch.setenv("PYTHONPATH", str(site))
    good = changed(tmp_path, 'torchrun: ["--port=29400"]', "svc: []")
    assert run(tmp_path, "run", good).code == 0
    for command in ("validate", "render", "run"):
        ended = run(tmp_path, command, MANIFEST)
        said = ended.out + ended.err
        assert 'the plugin "torchrun" of the package bad 1.0 cannot be imported: SystemExit' in said
        assert ended.code == (0 if command == "render" else 3), ended
        assert "Traceback" not in said
