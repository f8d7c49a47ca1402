"""The user's Python, which is ``python`` inside containers: where it is and what it needs."""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import msgspec

from vcjob.api.errors import VcjobError

_ASK = (
    "import json, sys, sysconfig; print(json.dumps([sys.executable, sys.prefix, sys.exec_prefix,"
    " sys.base_prefix, sys.base_exec_prefix, sysconfig.get_config_var('LIBDIR') or '']))"
)
_ASK_SECONDS = 30
_PARTS = ("bin", "lib", "lib64", "libexec", "include", "share")


class PythonNotFound(VcjobError):
    """``--python`` names no interpreter that runs."""


class Python(msgspec.Struct, frozen=True):
    """An interpreter: its path, and the directories it and its packages lie in."""

    executable: str
    directories: tuple[str, ...]


def find_python(chosen: str = "", environment: Mapping[str, str] = os.environ) -> str:
    """The interpreter for containers: ``--python``, else the active environment's, else ours.

    ``chosen`` is an interpreter or the directory of an environment.
    """
    if chosen:
        return str(Path(chosen, "bin", "python")) if Path(chosen).is_dir() else chosen
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if root := environment.get(name):
            candidate = Path(root, "bin", "python")
            if os.access(candidate, os.X_OK):
                return str(candidate)
    return sys.executable


def read_python(executable: str, home: str) -> Python:
    """Ask an interpreter where it lives; raises PythonNotFound.

    ``home`` is the user's home directory, which is never made visible as a whole, not even when
    it is the prefix of a Python.
    """
    if executable == sys.executable:
        found = [
            *(sys.executable, sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix),
            str(sysconfig.get_config_var("LIBDIR") or ""),
        ]
    else:
        try:
            done = subprocess.run(
                [executable, "-c", _ASK], capture_output=True, timeout=_ASK_SECONDS, check=True
            )
            found = json.loads(done.stdout)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            raise PythonNotFound(
                f"{executable} is no Python that runs here; name one with --python"
            ) from error
    return Python(found[0], _needed(found[1:], os.path.realpath(home)))


def _needed(prefixes: list[str], home: str) -> tuple[str, ...]:
    needed: list[str] = []
    for prefix in prefixes:
        if not prefix:
            continue
        for directory in dict.fromkeys((prefix, os.path.realpath(prefix))):
            if directory == "/" or f"{home}/".startswith(f"{directory.rstrip('/')}/"):
                needed += [os.path.join(directory, part) for part in _PARTS]
            else:
                needed.append(directory)
    present = [d for d in dict.fromkeys(needed) if os.path.isdir(d)]
    return tuple(d for d in present if not any(_inside(d, other) for other in present))


def _inside(path: str, directory: str) -> bool:
    return path.startswith(directory.rstrip("/") + "/")
