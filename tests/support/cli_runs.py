"""``vcjob`` as a user starts it: a process of its own with a state directory of its own."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import yaml

Manifest = dict[str, Any]


def environment(directory: Path) -> dict[str, str]:
    """The environment of a run whose state stays below ``directory``."""
    return {**os.environ, "XDG_STATE_HOME": str(directory / "state")}


def start(
    directory: Path,
    *arguments: str | Path,
    stdout: int | IO[bytes] = subprocess.PIPE,
    redirection: str = "",
    before: str = "",
) -> subprocess.Popen[bytes]:
    """Start ``vcjob`` in ``directory``, with its output in pipes unless told otherwise.

    ``redirection`` is a shell's (``>&-``), and so is what happens ``before`` (``trap '' HUP``).
    """
    command = [sys.executable, "-m", "vcjob", *map(str, arguments)]
    return subprocess.Popen(
        ["sh", "-c", f'{before}\nexec "$@" {redirection}', "sh", *command],
        cwd=directory,
        env=environment(directory),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


class Ended:
    """What a ``vcjob`` that has ended left: its exit code and what it said."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        try:
            output, errors = process.communicate()
        except BaseException:  # the test's time is over: leave nothing behind
            process.kill()
            process.communicate()
            raise
        self.code = process.returncode
        self.raw = output or b""
        self.out = self.raw.decode(errors="backslashreplace")
        self.err = errors.decode(errors="backslashreplace")

    def lines(self, label: str) -> list[str]:
        """What the pod called ``label`` printed."""
        pairs = (line.partition(" | ") for line in self.out.split("\n"))
        return [said for shown, bar, said in pairs if bar and shown.strip() == label]

    def __repr__(self) -> str:
        return f"exit code {self.code}\n{self.out}\n{self.err}"


def run(directory: Path, *arguments: str | Path) -> Ended:
    """Run ``vcjob`` to its end."""
    return Ended(start(directory, *arguments))


def task(name: str, command: Sequence[str], replicas: int = 1, **more: Any) -> Manifest:
    """A task whose pods have one container; ``more`` goes into the task."""
    container = {"name": "main", "image": "unused", "command": list(command)}
    spec = {"restartPolicy": "Never", "containers": [container]}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}, **more}


def job(name: str, *tasks: Manifest, **more: Any) -> Manifest:
    """A Job with the svc and env plugins; ``more`` goes into its spec."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"plugins": {"svc": [], "env": []}, "tasks": list(tasks), **more},
    }


def write(directory: Path, *objects: Manifest, name: str = "job.yaml") -> Path:
    """Write objects into one manifest file."""
    path = directory / name
    path.write_text(yaml.safe_dump_all(objects))
    return path
