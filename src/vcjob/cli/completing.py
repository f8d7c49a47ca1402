"""Names of Jobs and pods for shell completion, asked of the cluster that the command line names.

A shell shows no errors, so whatever goes wrong gives no names.
"""

import asyncio

import click
from click.shell_completion import CompletionItem

from vcjob.api.errors import VcjobError
from vcjob.api.kinds import JOB, POD
from vcjob.api.names import JOB_NAME
from vcjob.cli.podtext import short_pod_name
from vcjob.cli.target import KUBECTL_PLUGIN, TargetOptions, find_server

_SECONDS = 2.0


def complete(ctx: click.Context, incomplete: str, *, pods: bool) -> list[CompletionItem]:
    """Jobs whose names begin so, or with ``pods`` behind a slash the pods of one."""
    context, kubeconfig, namespace = (
        ctx.params.get(name) or "" for name in ("context", "kubeconfig", "namespace")
    )
    by_kubectl = ctx.find_root().info_name == KUBECTL_PLUGIN
    options = TargetOptions(context, kubeconfig, namespace, by_kubectl)
    try:
        names = asyncio.run(_names(options, incomplete if pods else ""))
    except (VcjobError, click.ClickException, TimeoutError):
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


async def _names(options: TargetOptions, incomplete: str) -> list[str]:
    from vcjob.kubernetes.cluster import KubernetesCluster

    server = find_server(options)
    namespace = options.namespace or server.namespace
    job, slash, _ = incomplete.partition("/")
    async with asyncio.timeout(_SECONDS), KubernetesCluster.of(server) as cluster:
        if slash:
            listed = await cluster.list(POD, namespace, {JOB_NAME: job})
            return sorted(f"{job}/{short_pod_name(job, _name(pod))}" for pod in listed.items)
        return sorted(map(_name, (await cluster.list(JOB, namespace)).items))


def _name(obj: dict[str, dict[str, str]]) -> str:
    return obj["metadata"]["name"]
