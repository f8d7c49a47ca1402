"""Options about what pods may have of this machine, which ``run`` and ``engine start`` share."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from vcjob.local.options import EngineOptions

Bind = tuple[Path, str, bool]
"""Source, target, read only."""


class BindType(click.ParamType[Bind]):
    """``SRC:DST`` or ``SRC:DST:ro``: a directory or file of this machine shown inside pods."""

    name = "SRC:DST[:ro]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Bind:
        """Read the text; fails with an example of what would be right."""
        source, colon, rest = value.partition(":")
        target, _, mode = rest.partition(":")
        if not source or not colon or not target.startswith("/") or mode not in ("", "ro", "rw"):
            self.fail(
                f"{value!r} is not SRC:DST or SRC:DST:ro with an absolute DST, "
                "for example ./data:/data",
                param,
                ctx,
            )
        if ".." in target.split("/"):
            self.fail(f"{target!r} must not contain '..'", param, ctx)
        if _is_system(target):
            self.fail(
                f"{target!r} belongs to the container's own system; choose another place, "
                "for example /data",
                param,
                ctx,
            )
        path = Path(source).expanduser()
        if not path.exists():
            self.fail(f"{source!r} does not exist on this machine", param, ctx)
        there = Path(target)
        if _is_of_machine(target) and there.exists() and there.is_dir() != path.is_dir():
            kinds = ("a directory", "a file") if there.is_dir() else ("a file", "a directory")
            self.fail(
                f"{target!r} is {kinds[0]} in every pod, of which {source!r}, {kinds[1]}, cannot "
                "take the place; choose another, for example /data",
                param,
                ctx,
            )
        return path.resolve(), target, mode == "ro"


def _is_system(target: str) -> bool:
    """Whether programs depend on what is at this place in every container."""
    first, *rest = [part for part in target.split("/") if part not in ("", ".")] or [""]
    return first in ("", "proc", "sys", ".vcjob") or (first == "dev" and rest[:1] != ["shm"])


def _is_of_machine(target: str) -> bool:
    """Whether pods see there what this machine has at the same place."""
    first = target.strip("/").partition("/")[0]
    return first in ("bin", "etc", "opt", "sbin", "usr") or first.startswith("lib")


_OPTIONS = (
    click.option("-v", "--volume", "binds", type=BindType(), multiple=True,
                 metavar="SRC:DST[:ro]",
                 help="Show a file or directory of this machine inside every pod."),
    click.option("--allow-host-path", "host_paths", multiple=True, metavar="DIR",
                 type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
                 help="Let hostPath volumes reach below DIR."),
    click.option("--python", metavar="PATH", type=click.Path(exists=True, path_type=Path),
                 help="The Python that pods see as python (an interpreter or an environment's "
                 "directory). Default: the active environment, else vcjob's own."),
    click.option("--map-users", is_flag=True,
                 help="As root: give pods unprivileged user numbers instead of root's own."),
)  # fmt: skip


def pod_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the parameters ``binds``, ``host_paths``, ``python`` and ``map_users``."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def engine_options(
    binds: tuple[Bind, ...], host_paths: tuple[Path, ...], python: Path | None, map_users: bool
) -> "EngineOptions":
    """What these parameters mean to the engine; raises UsageError."""
    if map_users and os.geteuid() != 0:
        raise click.UsageError(
            "--map-users is for root; started by another user, pods have none of root's numbers"
        )
    from vcjob.local.options import EngineOptions

    return EngineOptions(
        binds=binds,
        python=str(python.absolute()) if python else "",
        host_paths=host_paths,
        map_users=map_users,
    )
