"""The Dockerfile, as far as it can be checked without building an image."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from vcjob import __version__
from vcjob.cli.main import cli
from vcjob.kubernetes.installing import workloads
from vcjob.kubernetes.installing.installation import Installation

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "Dockerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


class Step(NamedTuple):
    instruction: str
    arguments: str


def steps(text: str) -> list[Step]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [Step(*line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


STEPS = steps(TEXT)
BEGINNINGS = [place for place, step in enumerate(STEPS) if step.instruction == "FROM"]
BUILD, FINAL = STEPS[: BEGINNINGS[1]], STEPS[BEGINNINGS[1] :]


def only(stage: list[Step], instruction: str) -> str:
    [found] = [step.arguments for step in stage if step.instruction == instruction]
    return found


def copied() -> list[str]:
    """Files and directories that the first stage gets."""
    copies = [step.arguments.split() for step in BUILD if step.instruction == "COPY"]
    return [name for *names, _ in copies for name in names]


def test_there_are_two_stages_on_the_same_python() -> None:
    images = [STEPS[place].arguments.split()[0] for place in BEGINNINGS]
    assert len(images) == 2
    assert len(set(images)) == 1
    version = re.fullmatch(r"python:3\.(\d+)-slim", images[0])
    assert version is not None
    assert int(version[1]) >= int(PROJECT["requires-python"].removeprefix(">=3."))


@pytest.mark.parametrize("name", copied())
def test_what_is_copied_is_there_and_sent(name: str) -> None:
    assert (ROOT / name).exists()
    assert f"!{name}\n" in (ROOT / ".dockerignore").read_text()


def test_what_is_copied_is_enough_for_the_package(tmp_path: Path) -> None:
    source, built = tmp_path / "source", tmp_path / "built"
    source.mkdir()
    ignored = shutil.ignore_patterns("__pycache__")
    for name in copied():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, source / name)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    [wheel] = built.iterdir()
    assert f"-{__version__}-" in wheel.name
    assert "vcjob/cli/main.py" in zipfile.ZipFile(wheel).namelist()


def test_the_extra_that_is_installed_exists() -> None:
    extras = re.findall(r"'\.\[(\w+)\]'", only(BUILD, "RUN"))
    assert len(extras) == 1
    assert extras[0] in PROJECT["optional-dependencies"]


def test_the_final_stage_takes_the_environment_and_adds_nothing() -> None:
    [environment] = re.findall(r"venv --without-pip (\S+)", only(BUILD, "RUN"))
    assert only(FINAL, "COPY") == f"--from=build {environment} {environment}"
    assert f"PATH={environment}/bin:$PATH" in only(FINAL, "ENV")
    assert "install" not in only(FINAL, "RUN").replace("uninstall", "")


def test_the_user_is_that_of_the_deployments() -> None:
    assert only(FINAL, "USER") == f"{workloads.USER}:{workloads.USER}"


def test_the_entry_point_is_the_command_that_the_deployments_call() -> None:
    [program] = json.loads(only(FINAL, "ENTRYPOINT"))
    assert program in PROJECT["scripts"]
    commands = cli.list_commands(click.Context(cli))
    for arguments in (
        workloads.operator_arguments(Installation()),
        workloads.webhook_arguments(Installation()),
    ):
        assert arguments[0] in commands


def test_the_name_in_its_comments_is_the_one_that_manifests_use() -> None:
    assert f"docker build -t {Installation().image} ." in TEXT
