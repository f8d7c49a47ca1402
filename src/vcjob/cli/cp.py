"""``vcjob cp``: files between here and a pod, as tar archives through ``exec``.

The pod needs the program ``tar``. What comes out of a pod is not trusted: nothing is written
outside the destination, no owner, device or set-uid bit is taken over.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath

import click
import msgspec

from vcjob.api.problems import printable
from vcjob.api.types import Object
from vcjob.cli.execute import first_container
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.selection import Reference, ReferenceType, find_pod
from vcjob.cli.target import Target, on_target

if sys.version_info < (3, 11, 4):  # without filters for what is not trusted
    from backports import tarfile
else:
    import tarfile

_AT_ONCE = 64 * 1024


class _Place(msgspec.Struct, frozen=True):
    """A path here, or with ``reference`` one in a pod."""

    path: str
    reference: Reference | None = None


class _PlaceType(click.ParamType[_Place]):
    name = "PATH|JOB/POD:PATH"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> _Place:
        pod, colon, path = value.partition(":")
        if not colon or pod.startswith((".", "/")) or not pod:
            return _Place(value)
        if not path:
            self.fail(f"{value!r} has no path behind the colon", param, ctx)
        return _Place(path, ReferenceType().convert(pod, param, ctx))


@click.command(
    epilog="A directory is copied with all that is in it. An existing directory as DESTINATION "
    "gets the copy inside, else DESTINATION is the copy's own name."
)
@click.argument("source", type=_PlaceType(), metavar="SOURCE")
@click.argument("destination", type=_PlaceType(), metavar="DESTINATION")
@click.option("-c", "--container", default="", metavar="NAME",
              help="The container. Default: the pod's first.")  # fmt: skip
@on_target
async def cp(target: Target, source: _Place, destination: _Place, container: str) -> int:
    """Copy a file or directory from or to a pod: vcjob cp mnist/worker-0:/out ./out."""
    if (source.reference is None) == (destination.reference is None):
        raise click.UsageError("one of SOURCE and DESTINATION is in a pod, as JOB/POD:PATH")
    reference = source.reference or destination.reference
    assert reference is not None
    pod = await find_pod(target, reference)
    remote = _Remote(target, pod, container or first_container(pod))
    if source.reference:
        return await _download(remote, source.path, Path(destination.path))
    return await _upload(remote, _existing(source.path), destination.path)


def _existing(path: str) -> Path:
    if not os.path.lexists(path):
        raise click.UsageError(f"{path} does not exist")
    return Path(path)


def _own_name(path: Path) -> str:
    """The last part of a path, of ``.`` and ``..`` too."""
    return path.resolve().name if path.name in ("", "..") else path.name


def _destination(path: Path, name: str) -> Path:
    """The copy's own path: inside ``path`` if that is a directory."""
    if path.is_dir() and name not in (".", ".."):
        path = path / name
    if not path.parent.is_dir():
        raise click.UsageError(f"the directory {path.parent} does not exist")
    return path


class _Remote:
    """Programs in one container, and what they say when they fail."""

    def __init__(self, target: Target, pod: Object, container: str) -> None:
        self._target = target
        self._pod = pod["metadata"]
        self._container = container
        self.said = ""

    async def run(
        self, *command: str, into: int | None = None, stdin: AsyncIterator[bytes] | None = None
    ) -> int:
        """Run a program; its output goes to the descriptor ``into``."""
        from vcjob.kubernetes.remote import STDERR, RemoteOptions, run_remotely

        errors = bytearray()

        async def on_output(channel: int, content: bytes) -> None:
            if channel == STDERR:
                errors.extend(content[: _AT_ONCE - len(errors)])
            elif into is not None:
                await asyncio.to_thread(_write_all, into, content)

        code = await run_remotely(
            self._target.cluster.connection,
            self._pod["namespace"],
            self._pod["name"],
            RemoteOptions(self._container, command),
            on_output,
            stdin=stdin,
        )
        self.said = "; ".join(errors.decode(errors="replace").strip().splitlines())
        return code


async def _download(remote: _Remote, path: str, destination: Path) -> int:
    base = PurePosixPath(path)
    name = base.name or "."
    destination = _destination(destination, name)
    reading, writing = os.pipe()
    extracting = asyncio.create_task(asyncio.to_thread(_extract, reading, name, destination))
    try:
        code = await remote.run("tar", "cf", "-", "-C", str(base.parent), "--", name, into=writing)
    except BrokenPipeError:
        code = 0  # extracting says what is wrong
    finally:
        os.close(writing)
    try:
        await extracting
    except (tarfile.TarError, OSError) as error:
        if not code:
            return _failed(f"what came is not written: {error}")
    return _result(remote, code)


async def _upload(remote: _Remote, source: Path, path: str) -> int:
    target = PurePosixPath(path)
    if path.endswith("/") or await remote.run("test", "-d", path) == 0:
        target = target / _own_name(source)
    reading, writing = os.pipe()
    packing = asyncio.create_task(asyncio.to_thread(_pack, source, target.name, writing))
    try:
        code = await remote.run("tar", "xmf", "-", "-C", str(target.parent), stdin=_pieces(reading))
    finally:
        os.close(reading)
    try:
        await packing
    except BrokenPipeError:
        pass  # tar says what is wrong
    except OSError as error:
        return _failed(f"{error.filename or source} cannot be read: {error.strerror}")
    return _result(remote, code)


def _result(remote: _Remote, code: int) -> ExitCode:
    if code:
        return _failed(remote.said or f"tar ended with exit code {code}")
    return ExitCode.COMPLETED


def _failed(why: str) -> ExitCode:
    click.echo(f"vcjob: {printable(why)}", err=True)
    return ExitCode.FAILED


def _extract(descriptor: int, name: str, destination: Path) -> None:
    """Write the members of an archive; the first part of their names becomes ``destination``."""
    with (
        os.fdopen(descriptor, "rb") as stream,
        tarfile.open(fileobj=stream, mode="r|") as archive,
    ):
        for member in archive:
            parts = PurePosixPath(member.name).parts
            inner = parts if name == "." else parts[1:]
            place = PurePosixPath(destination.name, *inner)
            moved = member.replace(name=str(place), deep=False)
            if member.islnk():
                linked = PurePosixPath(member.linkname).parts
                inner = linked if name == "." else linked[1:]
                moved.linkname = str(PurePosixPath(destination.name, *inner))
            archive.extract(moved, destination.parent, filter="data")


def _pack(source: Path, name: str, descriptor: int) -> None:
    with (
        os.fdopen(descriptor, "wb") as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        archive.add(source, arcname=name, filter=_of_nobody)


def _of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Our user may not exist in the pod, and tar would fail to give files away."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


async def _pieces(descriptor: int) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(os.read, descriptor, _AT_ONCE):
        yield piece


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]
