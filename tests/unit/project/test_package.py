"""What is published: the files of the wheel, and what the package offers to programs."""

import importlib.metadata
import tomllib
from pathlib import Path

import vcjob

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def installed_files() -> set[str]:
    files = importlib.metadata.files("vcjob")
    assert files is not None
    return {str(file) for file in files}


def test_version_is_that_of_the_installed_package() -> None:
    assert importlib.metadata.version("vcjob") == vcjob.__version__


def test_type_checkers_of_users_see_our_types() -> None:
    assert (Path(vcjob.__file__).parent / "py.typed").is_file()


def test_package_holds_every_file_of_the_source() -> None:
    """Fails too where an installed copy is older than the source: install again."""
    assert files_below(Path(vcjob.__file__).parent) == files_below(ROOT / "src" / "vcjob")


def files_below(directory: Path) -> set[str]:
    found = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)) for path in found if path.parent.name != "__pycache__"}


def test_licence_is_installed_with_the_package() -> None:
    assert any(name.endswith("dist-info/licenses/LICENSE") for name in installed_files())


def test_the_command_leads_somewhere() -> None:
    scripts = importlib.metadata.distribution("vcjob").entry_points.select(group="console_scripts")
    assert callable(scripts["vcjob"].load())


def test_every_dependency_tells_what_it_is_for() -> None:
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    for dependency in PROJECT["dependencies"]:
        (line,) = [each for each in lines if f'"{dependency}"' in each]
        assert "#" in line, f"{dependency} has no reason beside it"
