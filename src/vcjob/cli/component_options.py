"""Options that what runs on a cluster shares: which API server, and how it logs."""

import resource
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from vcjob.cli.operator_log import FORMATS, LEVELS

if TYPE_CHECKING:
    from vcjob.kubernetes.server import Server

F = TypeVar("F", bound=Callable[..., Any])


def server_options(command: F) -> F:
    """``--kubeconfig`` and ``--context``, for ``component_server``."""
    kubeconfig = click.option(
        "--kubeconfig", default="", metavar="FILE", type=click.Path(),
        help="The kubeconfig file. Without it and --context: the service account of the pod "
        "that this runs in.")  # fmt: skip
    context = click.option(
        "--context", default="", metavar="NAME",
        help="A context of the kubeconfig file. Default: its current one.")  # fmt: skip
    return kubeconfig(context(command))


def log_options(command: F) -> F:
    """``--log-format`` and ``--log-level``, for ``operator_log.set_up``."""
    form = click.option(
        "--log-format", type=click.Choice(FORMATS), default="text", show_default=True,
        help="A line for people, or a JSON object a line.")  # fmt: skip
    level = click.option(
        "--log-level", type=click.Choice(LEVELS), default="info", show_default=True,
        help="What is logged at least.")  # fmt: skip
    return form(level(command))


def uses_account_of_pod(kubeconfig: str, context: str) -> bool:
    """Whether these options name no server: it is that of the pod, asked with its account."""
    return not kubeconfig and not context


def allow_many_descriptors() -> None:
    """Let this process have as many as it may: a connection takes one, and 1,024 are soon gone."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def component_server(kubeconfig: str, context: str, health_address: tuple[str, int]) -> "Server":
    """The server that the options name, else that of the pod.

    Raises click.ClickException where there is none; as a pod it is waited for, with probes at
    ``health_address``.
    """
    from vcjob.kubernetes.errors import KubeconfigError
    from vcjob.kubernetes.kubeconfig import (
        in_cluster_server,
        kubeconfig_files,
        read_kubeconfig,
        runs_in_pod,
    )

    def find() -> "Server":
        if uses_account_of_pod(kubeconfig, context):
            return in_cluster_server()
        files = (Path(kubeconfig),) if kubeconfig else kubeconfig_files()
        return read_kubeconfig(files, context)

    try:
        return find()
    except KubeconfigError as error:
        if runs_in_pod():
            from vcjob.cli.waiting_for_server import server_once_known

            return server_once_known(find, health_address)
        unnamed = uses_account_of_pod(kubeconfig, context)
        hint = " with --kubeconfig or --context" if unnamed else ""
        raise click.ClickException(f"{error}{hint}") from error
