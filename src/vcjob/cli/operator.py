"""``vcjob operator``: options in, a process that looks after the Jobs of a cluster out."""

import math
from typing import TYPE_CHECKING

import click

from vcjob.api.names import WIDENING
from vcjob.cli.addresses import AddressType
from vcjob.cli.component_options import (
    allow_many_descriptors,
    component_server,
    log_options,
    server_options,
    uses_account_of_pod,
)
from vcjob.cli.durations import DurationType
from vcjob.cli.namespaces import namespace_option, namespaces_option, own_namespace_option
from vcjob.kubernetes.installing.installation import NAMESPACE, VOLCANO_NAMESPACE

if TYPE_CHECKING:
    from vcjob.controller.leading import Terms

_SCHEDULERS = ("auto", "volcano", "builtin")


def _finite(ctx: click.Context, parameter: click.Parameter, value: float) -> float:
    if not math.isfinite(value):  # a range of click lets nan pass
        raise click.BadParameter(f"{value} is not a rate; 0 is for no limit", ctx, parameter)
    return value


@click.command(
    epilog="It ends with exit code 0 when it is told to (SIGTERM, SIGINT), having given its Lease "
    "back so that another replica goes on at once; a second signal ends it on the spot. 1: "
    "Volcano's controller is at work (in a pod that is waited for, too), or the "
    "address is taken. What else is missing (CustomResourceDefinitions, rights, the API server) is "
    "waited for, and told by /readyz. docs/operator.md tells how to install it."
)
@server_options
@click.option("--namespaces", metavar="A,B", callback=namespaces_option,
              help="Look after the Jobs of these namespaces only.")  # fmt: skip
@click.option("--scheduler", type=click.Choice(_SCHEDULERS), default="auto", show_default=True,
              help="Who admits gangs: Volcano's scheduler, or the operator (builtin). auto looks "
              "whether Volcano's scheduler renews its Lease.")  # fmt: skip
@click.option("--take-over", is_flag=True,
              help="Work although Volcano's controller does: hold its Lease, so that it waits from "
              "then on. Ends with the operator.")  # fmt: skip
@click.option("--volcano-namespace", default=VOLCANO_NAMESPACE, show_default=True, metavar="NAME",
              callback=namespace_option, help="Where Volcano keeps its Leases.")  # fmt: skip
@click.option("--leader-elect/--no-leader-elect", default=True, show_default=True,
              help="Have one of several replicas work. Without it there must be one "
              "only.")  # fmt: skip
@click.option("--leader-elect-lease-duration", "lease_duration", type=DurationType(), default="15s",
              show_default=True, help="How long replicas wait for a leader that is "
              "silent.")  # fmt: skip
@click.option("--leader-elect-renew-deadline", "renew_deadline", type=DurationType(), default="10s",
              show_default=True, help="How long a leader works on without having renewed its "
              "Lease.")  # fmt: skip
@click.option("--leader-elect-retry-period", "retry_period", type=DurationType(), default="2s",
              show_default=True, help="Between renewals, and between looks of who "
              "waits.")  # fmt: skip
@click.option("--lease-namespace", default="", metavar="NAME", callback=own_namespace_option,
              help="Where replicas keep their Lease. Default: the pod's own, else "
              "vcjob-system.")  # fmt: skip
@click.option("--api-rate", type=click.FloatRange(min=0), default=500.0, show_default=True,
              callback=_finite, metavar="N",
              help="Writes a second in the long run; 0: no limit.")  # fmt: skip
@click.option("--api-burst", type=click.IntRange(min=1), default=1000, show_default=True,
              metavar="N", help="Writes at once after a pause.")  # fmt: skip
@click.option("--api-concurrency", type=click.IntRange(min=1), default=64, show_default=True,
              metavar="N", help="Writes under way at the same time.")  # fmt: skip
@click.option("--workers", type=click.IntRange(min=1), default=8, show_default=True, metavar="N",
              help="Jobs looked at at the same time.")  # fmt: skip
@click.option("--health-address", type=AddressType(default_host=""), default=":8080",
              show_default=True, metavar="HOST:PORT",
              help="Where /healthz, /readyz and /metrics are answered.")  # fmt: skip
@click.option("--third-party-plugins", is_flag=True,
              help="Use plugins of other packages: their code runs with the operator's "
              "rights.")  # fmt: skip
@click.option("--allow-annotation", "allowed", multiple=True, type=click.Choice(WIDENING),
              metavar="NAME", help="An annotation that widens what the author of a Job may do; "
              "without it, it counts for nothing. May be repeated.")  # fmt: skip
@log_options
def operator(
    kubeconfig: str,
    context: str,
    namespaces: tuple[str, ...],
    scheduler: str,
    take_over: bool,
    volcano_namespace: str,
    leader_elect: bool,
    lease_duration: float,
    renew_deadline: float,
    retry_period: float,
    lease_namespace: str,
    api_rate: float,
    api_burst: int,
    api_concurrency: int,
    workers: int,
    health_address: tuple[str, int],
    third_party_plugins: bool,
    allowed: tuple[str, ...],
    log_format: str,
    log_level: str,
) -> int:
    """Look after the Jobs of a cluster.

    It decides as the engine of this machine does, and writes pods and all that belongs to them to
    the API server. While Volcano's own controller works it does not start: in a pod it waits,
    elsewhere it ends. That is told by the Lease vc-controller-manager in Volcano's namespace
    (--volcano-namespace), so a controller of Volcano without leader election (--leader-elect=false)
    is not noticed: stop it first.
    """
    from vcjob.cli.operator_log import set_up
    from vcjob.cli.operator_run import run_operator
    from vcjob.kubernetes.kubeconfig import runs_in_pod
    from vcjob.kubernetes.operator_options import OperatorOptions

    set_up(log_format, log_level)
    allow_many_descriptors()
    server = component_server(kubeconfig, context, health_address)
    own = server.namespace if uses_account_of_pod(kubeconfig, context) else NAMESPACE
    options = OperatorOptions(
        namespaces=namespaces,
        scheduler=scheduler,
        take_over=take_over,
        waits_for_volcano=runs_in_pod(),
        volcano_namespace=volcano_namespace,
        leader_elect=leader_elect,
        terms=_terms(lease_duration, renew_deadline, retry_period),
        lease_namespace=lease_namespace or own,
        api_rate=api_rate,
        api_burst=api_burst,
        api_concurrency=api_concurrency,
        workers=workers,
        health_address=health_address,
        third_party_plugins=third_party_plugins,
        allowed_annotations=allowed,
    )
    return run_operator(server, options, log_format, log_level)


def _terms(duration: float, renew_deadline: float, retry_period: float) -> "Terms":
    from vcjob.controller.leading import Terms

    try:
        return Terms(duration, renew_deadline, retry_period)
    except ValueError as error:
        raise click.UsageError(f"--leader-elect-...: {error}") from error
