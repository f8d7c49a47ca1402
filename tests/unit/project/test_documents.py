"""The documents hold together: links lead somewhere, the architecture is the one that CI checks."""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NOT_OURS = {".git", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", "__pycache__"}
NOT_OURS |= {"dist", "build", ".import_linter_cache"}
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS = {each["type"]: each for each in PROJECT["tool"]["importlinter"]["contracts"]}


def our_files(directory: Path = ROOT) -> Iterator[Path]:
    for path in sorted(directory.iterdir()):
        if path.name in NOT_OURS or path.name.startswith(".venv") or path.is_symlink():
            continue
        if path.is_dir():
            yield from our_files(path)
        else:
            yield path


DOCUMENTS = [path for path in our_files() if path.suffix == ".md"]


def anchors_of(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(document: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = document.parent / name if name else document
        assert target.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors_of(target.read_text()), f"no heading for {link}"


def test_picture_of_imports_is_the_contract_that_is_checked() -> None:
    picture = re.search(r"^(cli ─► .*)$", ARCHITECTURE, re.M)
    assert picture is not None
    rooms = [
        " | ".join(f"vcjob.{room}" for room in beside.split(" | "))
        for beside in picture[1].split(" ─► ")
    ]
    assert rooms == CONTRACTS["layers"]["layers"]


def test_every_room_has_a_row_in_the_architecture() -> None:
    source = ROOT / "src" / "vcjob"
    rooms = {f"{path.name}/" for path in source.iterdir() if (path / "__init__.py").exists()}
    modules = {path.name for path in source.glob("*.py") if not path.name.startswith("__")}
    assert set(re.findall(r"^\| `([\w.]+/?)` \|", ARCHITECTURE, re.M)) == rooms | modules


def test_files_that_the_architecture_names_exist() -> None:
    source = ROOT / "src" / "vcjob"
    directories = [ROOT, source, *(path for path in source.rglob("*") if path.is_dir())]
    for name in re.findall(r"`([\w./-]+(?:\.py|/))`", ARCHITECTURE):
        assert any((directory / name).exists() for directory in directories), name


@pytest.mark.parametrize("directory", ["src", "tests", "docs", "bench", "examples", ".ci"])
def test_no_file_knows_the_machine_it_was_written_on(directory: str) -> None:
    """Neither the place of this checkout nor that of its Python, unless both are common ones."""
    places = {str(ROOT), sys.prefix, sys.base_prefix, str(Path.home())}
    places = {f"{place}/" for place in places if place.count("/") > 1} - {"/usr/local/"}
    found = [
        f"{path.relative_to(ROOT)} holds {place}"
        for path in [*our_files(ROOT / directory), *ROOT.glob("*.md"), *ROOT.glob("*.toml")]
        for place in places
        if place.encode() in path.read_bytes()
    ]
    assert found == []
