"""Which cluster a command is about: the engine of this machine unless a context is named.

A command is an async function that takes a ``Target`` first; ``@on_target`` makes it a command with
the options that all of them share. What a cluster does is done to a cluster only when the user has
named it, and then every command says on standard error which one it is. Who names a kubeconfig
file, or calls us as a plug-in of kubectl (``kubectl vcjob``), means that file's current context.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click
import msgspec

from vcjob.api.errors import VcjobError, first_of
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.namespaces import own_namespace_option

if TYPE_CHECKING:
    from vcjob.kubernetes.cluster import KubernetesCluster
    from vcjob.kubernetes.server import Server

P = ParamSpec("P")
R = TypeVar("R")
CONTEXT_VARIABLE = "VCJOB_CONTEXT"
KUBECTL_PLUGIN = "kubectl vcjob"
"""How we are called as a plug-in of kubectl; then its current context is the default."""


class EngineNotRunning(VcjobError):
    """Nothing answers on this machine."""

    exit_code = ExitCode.MACHINE_CANNOT

    def __init__(self) -> None:
        super().__init__(
            "no engine is running on this machine: start one with vcjob engine start --detach, "
            f"or name a cluster with --context or {CONTEXT_VARIABLE}"
        )


class Target(msgspec.Struct, frozen=True):
    """A cluster and the namespace that is meant there. ``local`` is the engine of this machine."""

    cluster: "KubernetesCluster"
    namespace: str
    local: bool


class TargetOptions(msgspec.Struct, frozen=True):
    """What the shared options say; an empty text is an option that was not given.

    ``by_kubectl``: we were called as its plug-in.
    """

    context: str = ""
    kubeconfig: str = ""
    namespace: str = ""
    by_kubectl: bool = False

    @property
    def local(self) -> bool:
        """Whether no cluster is named, so that this machine's engine is meant."""
        return not (self.context or self.kubeconfig or self.by_kubectl)


def on_target(
    function: Callable[Concatenate[Target, P], Awaitable[int]],
) -> Callable[..., int]:
    """Make an async function over a Target one that click can call, with the shared options.

    What it takes is the shared options and what ``function`` takes beside the target, by name.
    """

    @click.option("--context", envvar=CONTEXT_VARIABLE, default="", metavar="NAME",
                  help="A cluster's context in the kubeconfig file, instead of this machine's "
                  f"engine (also {CONTEXT_VARIABLE}).")  # fmt: skip
    @click.option("--kubeconfig", default="", metavar="FILE", type=click.Path(),
                  help="The kubeconfig file of --context, without which its current one is meant. "
                  "Default: KUBECONFIG, else ~/.kube/config.")  # fmt: skip
    @click.option("-n", "--namespace", default="", metavar="NAME", callback=own_namespace_option,
                  help="The namespace. Default: the context's, else default.")  # fmt: skip
    @functools.wraps(function)
    def call(context: str, kubeconfig: str, namespace: str, **arguments: Any) -> int:
        options = TargetOptions(context, kubeconfig, namespace, called() == KUBECTL_PLUGIN)
        return asyncio.run(with_target(function, options, **arguments))

    return call


async def with_target(
    function: Callable[..., Awaitable[R]], options: TargetOptions, **arguments: Any
) -> R:
    """Call ``function`` with the target that the options name.

    Raises EngineNotRunning, ClusterError, click.ClickException, and what it raises.
    """
    from vcjob.kubernetes.cluster import KubernetesCluster
    from vcjob.kubernetes.errors import NotTrusted, Unreachable

    server = find_server(options)
    if not options.local:
        click.echo(f"{called()}: context {server.name} ({server.url})", err=True)
    async with KubernetesCluster.of(server) as cluster:
        target = Target(cluster, options.namespace or server.namespace, options.local)
        try:
            return await function(target, **arguments)
        except (Unreachable, BaseExceptionGroup) as error:
            first = first_of(error)
            silent = isinstance(first, Unreachable) and not isinstance(first, NotTrusted)
            if options.local and silent:
                raise EngineNotRunning from first
            raise first from None


def called() -> str:
    """What the user typed to call us: ``vcjob``, or ``kubectl vcjob``."""
    name = click.get_current_context().find_root().info_name
    return KUBECTL_PLUGIN if name == KUBECTL_PLUGIN else "vcjob"


def find_server(options: TargetOptions) -> "Server":
    """The server that the options name; raises EngineNotRunning, click.ClickException."""
    from vcjob.kubernetes.errors import KubeconfigError
    from vcjob.kubernetes.kubeconfig import kubeconfig_files, read_kubeconfig

    if not options.local:
        files = (Path(options.kubeconfig),) if options.kubeconfig else kubeconfig_files()
        try:
            return read_kubeconfig(files, options.context)
        except KubeconfigError as error:
            raise click.ClickException(str(error)) from error
    file = engine_kubeconfig()
    if not file.exists():
        raise EngineNotRunning
    return read_kubeconfig((file,))


def engine_kubeconfig() -> Path:
    """The kubeconfig file that the engine of this machine writes while it runs."""
    from vcjob.local.service.home import EngineHome

    home = EngineHome.of_user()
    record = home.read_record()
    return Path(record.kubeconfig) if record else home.kubeconfig
