"""``vcjob engine``: the engine of this machine as a service for any Kubernetes client."""

import asyncio
from collections import Counter
from pathlib import Path

import click

from vcjob.cli.addresses import AddressType
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.pod_options import engine_options, pod_options


@click.group()
def engine() -> None:
    """Run the engine of this machine as a service that kubectl and other clients can use.

    It keeps its objects and logs on disk, so that they are still there when it is started again.
    """


@engine.command(
    epilog="In the foreground it serves until Ctrl-C, which ends pods with their grace periods; "
    "a second one ends them at once."
)
@click.option("--detach", is_flag=True, help="Return when it is ready, and leave it running.")
@click.option("--kubeconfig", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the kubeconfig file there too.")  # fmt: skip
@click.option("--merge", is_flag=True,
              help="Add a context vcjob to your kubeconfig file while it runs (KUBECONFIG, else "
              "~/.kube/config); the current context stays.")  # fmt: skip
@click.option("--listen", type=AddressType(), default="127.0.0.1:0",
              help="Where to listen. Default: 127.0.0.1, the port of the last time.")  # fmt: skip
@click.option("--no-controller", is_flag=True,
              help="Leave the Jobs to an operator of yours: vcjob operator, with the engine's "
              "kubeconfig file.")  # fmt: skip
@click.option("--no-scheduler", is_flag=True,
              help="Leave PodGroups, and pods that have no node, to a scheduler of "
              "yours.")  # fmt: skip
@pod_options
def start(
    detach: bool,
    kubeconfig: Path | None,
    merge: bool,
    listen: tuple[str, int],
    no_controller: bool,
    no_scheduler: bool,
    binds: tuple[tuple[Path, str, bool], ...],
    host_paths: tuple[Path, ...],
    python: Path | None,
    map_users: bool,
) -> int:
    """Start the engine."""
    from vcjob.cli.engine_start import start_detached, start_here
    from vcjob.local.service.kubeconfigs import user_kubeconfig
    from vcjob.local.service.serving import ServiceOptions, is_loopback

    host, port = listen
    if not is_loopback(host):
        click.echo(
            f"vcjob: {host} can be reached from other machines: whoever has the token in the "
            "kubeconfig file can run programs as you",
            err=True,
        )
    options = ServiceOptions(
        engine=engine_options(binds, host_paths, python, map_users),
        host=host,
        port=port,
        kubeconfig=kubeconfig.absolute() if kubeconfig else None,
        merge=user_kubeconfig().absolute() if merge else None,
        with_controller=not no_controller,
        with_scheduler=not no_scheduler,
    )
    return start_detached(options) if detach else start_here(options)


@engine.command()
@click.option("--now", is_flag=True, help="End pods at once, without their grace periods.")
def stop(now: bool) -> int:
    """End the engine and its pods. Objects and logs stay."""
    from vcjob.local.service.home import EngineHome
    from vcjob.local.service.stopping import stop_engine

    ended = stop_engine(EngineHome.of_user(), now=now)
    click.echo("vcjob: the engine has ended" if ended else "vcjob: no engine was running", err=True)
    return ExitCode.COMPLETED


@engine.command(epilog="The exit code is 0 if an engine runs, 1 if none does.")
def status() -> int:
    """Show whether the engine runs, where, and what it does."""
    from vcjob.cli.tables import age
    from vcjob.core.times import timestamp
    from vcjob.local.service.home import EngineHome

    home = EngineHome.of_user()
    pid = home.running()
    record = home.read_record()
    if not pid:
        click.echo("no engine is running; vcjob engine start --detach starts one")
        return ExitCode.FAILED
    if record is None or record.pid != pid:
        click.echo(f"an engine is starting or ending (process {pid})")
        return ExitCode.FAILED
    rows = [
        ("address", record.address),
        ("process", str(pid)),
        ("running for", age(timestamp(record.started))),
        ("jobs", asyncio.run(_jobs())),
        ("kubeconfig", record.kubeconfig),
    ]
    if record.merged:
        rows.append(("added to", record.merged))
    for name, value in rows:
        click.echo(f"{name + ':':<13}{value}")
    return ExitCode.COMPLETED


async def _jobs() -> str:
    from vcjob.api.kinds import JOB
    from vcjob.cli.target import TargetOptions, find_server
    from vcjob.kubernetes.cluster import KubernetesCluster

    async with KubernetesCluster.of(find_server(TargetOptions())) as cluster:
        jobs = (await cluster.list(JOB)).items
    phases = Counter(
        ((job.get("status") or {}).get("state") or {}).get("phase") or "Pending" for job in jobs
    )
    if not phases:
        return "none"
    return ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items()))
