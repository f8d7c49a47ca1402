"""``vcjob run --detach``: Jobs go to the engine of this machine, which runs them on."""

import asyncio
from collections.abc import Sequence

import click

from vcjob.api.kinds import JOB, find_kind
from vcjob.api.types import Object
from vcjob.cli.engine_start import start_detached
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.manifests import Loaded
from vcjob.cli.target import TargetOptions, find_server
from vcjob.controller.cluster import AlreadyExists
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.local.engine import EngineOptions
from vcjob.local.service.home import EngineHome
from vcjob.local.service.serving import ServiceOptions


def hand_over(loaded: Loaded, options: EngineOptions) -> int:
    """Create the objects in the engine, started with ``options`` if none runs; the exit code."""
    if not EngineHome.of_user().running():
        code = start_detached(ServiceOptions(engine=options))
        if code:
            return code
    elif options != EngineOptions():
        raise click.UsageError(
            "an engine runs already, and -v, --allow-host-path, --python and --map-users are "
            "settled when it starts: vcjob engine stop, then vcjob engine start --detach with them"
        )
    objects = [other.object for other in loaded.others]
    objects += [job.defaulted for job in loaded.jobs]
    return asyncio.run(_create(objects))


async def _create(objects: Sequence[Object]) -> int:
    code = ExitCode.COMPLETED
    async with KubernetesCluster.of(find_server(TargetOptions())) as cluster:
        for obj in objects:
            kind = find_kind(obj["apiVersion"], obj["kind"])
            assert kind is not None, "unknown kinds are refused when manifests are loaded"
            metadata = obj["metadata"]
            if kind.namespaced:
                metadata = {"namespace": "default", **metadata}
            try:
                created = await cluster.create(kind, {**obj, "metadata": metadata})
            except AlreadyExists:
                click.echo(f"vcjob: {kind} {metadata['name']} is there already", err=True)
                if kind == JOB:
                    code = ExitCode.FAILED
                continue
            if kind == JOB:
                _tell(created["metadata"])
    return code


def _tell(metadata: Object) -> None:
    name, namespace = metadata["name"], metadata["namespace"]
    where = "" if namespace == "default" else f" -n {namespace}"
    click.echo(name)
    click.echo(
        f"vcjob: {name} is with the engine; follow it with vcjob logs -f {name}{where}, "
        f"see it with vcjob describe {name}{where}",
        err=True,
    )
