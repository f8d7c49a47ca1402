"""``vcjob webhook``: options in, a process that answers a cluster's admission reviews out."""

import logging
from pathlib import Path
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
from vcjob.cli.namespaces import own_namespace_option

if TYPE_CHECKING:
    from vcjob.admission.webhook import WebhookOptions
    from vcjob.kubernetes.server import Server

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    epilog="It ends with exit code 0 when it is told to (SIGTERM, after 5 s in which it still "
    "answers; SIGINT). What is missing (rights, the API server, a certificate) is waited for, and "
    "told by /readyz."
)
@server_options
@click.option("--address", type=AddressType(default_host=""), default=":8443", show_default=True,
              metavar="HOST:PORT", help="Where API servers ask.")  # fmt: skip
@click.option("--health-address", type=AddressType(default_host=""), default=":8080",
              show_default=True, metavar="HOST:PORT",
              help="Where /healthz, /readyz and /metrics are answered.")  # fmt: skip
@click.option("--namespace", default="", metavar="NAME", callback=own_namespace_option,
              help="Where its Service and its Secret are. Default: the pod's own, else "
              "vcjob-system.")  # fmt: skip
@click.option("--service", default="vcjob-webhook", show_default=True, metavar="NAME",
              help="The Service by which API servers reach it.")  # fmt: skip
@click.option("--certificate", type=_FILE, metavar="FILE",
              help="Show this certificate (PEM), which is read again when it changes. Without it: "
              "one that it makes itself, keeps in the Secret vcjob-webhook-certificate, renews, "
              "and tells API servers of.")  # fmt: skip
@click.option("--key", type=_FILE, metavar="FILE", help="The key of --certificate.")
@click.option("--third-party-plugins", is_flag=True,
              help="Know plugins of other packages too, as the operator does with the same "
              "option.")  # fmt: skip
@click.option("--allow-annotation", "allowed", multiple=True, type=click.Choice(WIDENING),
              metavar="NAME", help="An annotation that widens what the author of a Job may do, and "
              "that the operator is told to allow: no warning is given. May be "
              "repeated.")  # fmt: skip
@log_options
def webhook(
    kubeconfig: str,
    context: str,
    address: tuple[str, int],
    health_address: tuple[str, int],
    namespace: str,
    service: str,
    certificate: Path | None,
    key: Path | None,
    third_party_plugins: bool,
    allowed: tuple[str, ...],
    log_format: str,
    log_level: str,
) -> int:
    """Complete and check Jobs and Queues of a cluster before they are stored.

    API servers ask it because of the webhook configurations vcjob-webhook, which vcjob manifests
    prints. It fills in what Jobs leave out, and refuses those that could not work, with every
    reason in one answer: the rules are those of vcjob validate.
    """
    from vcjob.admission.webhook import WebhookOptions
    from vcjob.cli.component_run import run_to_end
    from vcjob.cli.operator_log import set_up

    if bool(certificate) != bool(key):
        raise click.UsageError("--certificate and --key belong together: give both or none")
    set_up(log_format, log_level)
    allow_many_descriptors()
    server = component_server(kubeconfig, context, health_address)
    own = server.namespace if uses_account_of_pod(kubeconfig, context) else "vcjob-system"
    options = WebhookOptions(
        namespace=namespace or own,
        service=service,
        address=address,
        health_address=health_address,
        certificate=certificate,
        key=key,
        third_party_plugins=third_party_plugins,
        allowed_annotations=frozenset(allowed),
    )
    return run_to_end(_run(server, options), logging.getLogger(__name__))


async def _run(server: "Server", options: "WebhookOptions") -> None:
    from vcjob.admission.webhook import run_webhook
    from vcjob.kubernetes.cluster import KubernetesCluster

    async with KubernetesCluster.of(server) as cluster:
        await run_webhook(cluster, options)
