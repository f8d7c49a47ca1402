"""Whether a container's program will be there inside, told before any pod starts.

Images are not pulled: a container sees this machine's programs. So the commonest mistake is a
command or script that exists only in an image, or on this machine where containers do not look.
"""

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath

import msgspec

from vcjob.local.sandbox.launcher import PRIVATE, BindMount, resolve
from vcjob.local.sandbox.machine import Machine

_INTERPRETERS = re.compile(r"(python|pypy|perl|ruby|node|sh|bash|dash|Rscript)[0-9.]*")
_SHELLS = frozenset({"sh", "bash", "dash", "ash"})
_SHELL_ENDS = re.compile(r"[;&|()`]|\$\(|\n")


class Invisible(msgspec.Struct, frozen=True):
    """A program or script that is not there inside: its path or name, and one line of cures."""

    path: str
    cure: str

    def __str__(self) -> str:
        return f"{self.path} is not visible inside the container: {self.cure}"


PathExists = Callable[[str], bool]


def invisible(
    command: Sequence[str],
    environment: Mapping[str, str],
    mounts: Sequence[BindMount],
    machine: Machine,
    exists: PathExists = os.path.exists,
) -> Invisible | None:
    """The first program or script of ``command`` that the container will not find, if any.

    ``environment`` must have the PATH that the container gets. Looked at are the program, the
    script after an interpreter, and in ``sh -c`` text absolute paths in the same two places.
    ``exists`` asks about paths of this machine. Files that an earlier step of a shell text makes
    are not known, so in such a text only scripts in places where nothing can make them count.
    """
    if not command:
        return None
    view = _View(mounts, machine, exists)
    path = environment.get("PATH", "")
    program, *arguments = command
    if not _program_found(program, path, view):
        return Invisible(program, _cure(program))
    name = program.rpartition("/")[2]
    if name in _SHELLS and len(arguments) >= 2 and arguments[0].lstrip("-").endswith("c"):
        return _first_in_shell_text(arguments[1], view)
    script = _script(name, arguments)
    if script and script.startswith("/") and not view.has(script):
        return Invisible(script, _cure(script))
    return None


class _View:
    """The paths a container sees."""

    def __init__(self, mounts: Sequence[BindMount], machine: Machine, exists: PathExists) -> None:
        self._mounts = sorted(mounts, key=lambda m: -len(m.target))
        self._machine = machine
        self._exists = exists

    def has(self, path: str) -> bool:
        clean = resolve(path, self._machine)
        for mount in self._mounts:
            target = resolve(mount.target, self._machine)
            if clean == target or clean.startswith(f"{target.rstrip('/')}/"):
                below = clean[len(target) :].lstrip("/")
                return self._exists(str(PurePosixPath(mount.source, mount.sub_path, below)))
        if clean.startswith(f"{PRIVATE}/bin/"):
            return clean in self._own_programs()
        shown = (
            *self._machine.programs,
            *self._machine.python.directories,
            "/etc",
            "/proc",
            "/dev",
        )
        return any(clean.startswith(f"{d}/") or clean == d for d in shown) and self._exists(clean)

    def can_appear(self, path: str) -> bool:
        """Whether the container itself could make the file before it runs it."""
        clean = resolve(path, self._machine)
        return not clean.startswith((*(f"{d}/" for d in self._machine.programs), "/proc/")) and any(
            clean.startswith(place) for place in ("/tmp/", "/var/tmp/", "/run/", "/dev/shm/")
        )

    def _own_programs(self) -> set[str]:
        names = {"python", "python3", *(["sh"] if self._machine.shell else [])}
        return {f"{PRIVATE}/bin/{name}" for name in names}


def _program_found(program: str, path: str, view: _View) -> bool:
    if "/" in program:
        return not program.startswith("/") or view.has(program)
    return any(view.has(f"{directory}/{program}") for directory in path.split(":") if directory)


def _script(interpreter: str, arguments: Sequence[str]) -> str:
    """The script that an interpreter is given: the first argument that is no option."""
    if not _INTERPRETERS.fullmatch(interpreter):
        return ""
    for argument in arguments:
        if argument in ("-c", "-m", "-e", "-"):
            return ""
        if not argument.startswith("-"):
            return argument
    return ""


def _first_in_shell_text(text: str, view: _View) -> Invisible | None:
    for part in _SHELL_ENDS.split(text):
        try:
            words = shlex.split(part, comments=True)
        except ValueError:  # the text was cut inside quotes; a shell reads more than we do
            continue
        while words and re.fullmatch(r"[A-Za-z_]\w*=.*", words[0], re.DOTALL):
            words.pop(0)
        if words and words[0] in ("exec", "then", "do", "else", "if", "while", "time"):
            words.pop(0)
        if not words:
            continue
        script = _script(words[0].rpartition("/")[2], words[1:])
        for path in (words[0], script):
            plain = path.startswith("/") and not re.search(r"[$*?\[{]", path)
            if plain and not view.has(path) and not view.can_appear(path):
                return Invisible(path, _cure(path))
    return None


def _cure(path: str) -> str:
    if path.startswith("/"):
        folder = path.rpartition("/")[0] or "/"
        return (
            f"-v SRC:{folder} shows a directory of this machine there "
            "(images are not pulled; containers use this machine's programs)"
        )
    return (
        "install it on this machine, name the Python environment that has it with --python, or "
        "show its directory with -v SRC:DST (images are not pulled)"
    )
