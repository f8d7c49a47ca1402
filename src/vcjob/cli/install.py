"""``vcjob manifests``: everything that is to be installed on a cluster, for kubectl."""

import asyncio
import sys
import textwrap
from collections.abc import Iterator

import click
import msgspec

from vcjob import __version__
from vcjob.admission.configurations import webhook_configurations
from vcjob.api.kinds import CUSTOM_RESOURCE_DEFINITION, LEASE, QUEUE, Kind
from vcjob.api.names import WIDENING
from vcjob.api.types import Object
from vcjob.api.validation import dns_1123_subdomain
from vcjob.cli.documents import write_json, write_yaml
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.namespaces import namespace_option, namespaces_option
from vcjob.cli.target import CONTEXT_VARIABLE, TargetOptions, find_server
from vcjob.controller.cluster import Cluster, NotFound
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.installing.installation import (
    NAMESPACE,
    SCHEDULERS,
    VOLCANO_LEASES,
    VOLCANO_NAMESPACE,
    Installation,
    is_ours,
)
from vcjob.kubernetes.installing.notes import notes
from vcjob.kubernetes.installing.objects import Part, objects_of

_KEPT: dict[str, Kind] = {kind.kind: kind for kind in (CUSTOM_RESOURCE_DEFINITION, QUEUE)}
"""Kinds of which another's object is never replaced, by what objects call them."""
_WIDTH = 98


class _Found(msgspec.Struct, frozen=True):
    """What a cluster has already: objects of others, and whether Volcano is there."""

    others: frozenset[tuple[str, str]] = frozenset()
    defines_queues: bool = False
    has_volcano: bool = False


def _image(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if not value or any(character.isspace() for character in value):
        raise click.BadParameter(f'"{value}" is no image: write one word', ctx, parameter)
    return value


def _priority_class(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if value and (wrong := dns_1123_subdomain(value)):
        raise click.BadParameter(f'the name "{value}" must {wrong}', ctx, parameter)
    return value


@click.command(
    epilog="The same options print the same text, byte for byte; only with --context is a cluster "
    "asked, and then nothing of it is changed. docs/operator.md tells how to install, "
    "docs/security.md what each right is for."
)
@click.option("--namespace", default=NAMESPACE, show_default=True, metavar="NAME",
              callback=namespace_option, help="Where vcjob itself runs.")  # fmt: skip
@click.option("--namespaces", metavar="A,B", callback=namespaces_option,
              help="Look after the Jobs of these namespaces only, with Roles there.")  # fmt: skip
@click.option("--image", default=f"vcjob:{__version__}", show_default=True, metavar="IMAGE",
              callback=_image, help="The image made from the Dockerfile.")  # fmt: skip
@click.option("--replicas", type=click.IntRange(min=1), default=2, show_default=True,
              help="Pods of the operator, of which one works, and of the webhook.")  # fmt: skip
@click.option("--scheduler", type=click.Choice(SCHEDULERS), default="auto", show_default=True,
              help="Who admits gangs: Volcano's scheduler, or the operator (builtin).")  # fmt: skip
@click.option("--beside-volcano", is_flag=True,
              help="Volcano is installed: leave its definitions and Queues alone.")  # fmt: skip
@click.option("--take-over", is_flag=True,
              help="Take Jobs over from Volcano's controller while it still runs.")  # fmt: skip
@click.option("--volcano-namespace", default=VOLCANO_NAMESPACE, show_default=True, metavar="NAME",
              callback=namespace_option, help="Where Volcano keeps its Leases.")  # fmt: skip
@click.option("--no-webhook", is_flag=True, help="Leave out the admission webhook.")
@click.option("--no-crds", is_flag=True, help="Leave out the CustomResourceDefinitions.")
@click.option("--no-secrets", is_flag=True,
              help="No right on Secrets of Jobs; those with the plugin ssh wait.")  # fmt: skip
@click.option("--allow-annotation", "allowed", type=click.Choice(WIDENING), multiple=True,
              metavar="NAME", help="An annotation that widens what the author of a Job may do; "
              "may be repeated.")  # fmt: skip
@click.option("--third-party-plugins", is_flag=True,
              help="Use plugins of other packages that the image holds.")  # fmt: skip
@click.option("--priority-class", default="", metavar="NAME", callback=_priority_class,
              help="The PriorityClass of vcjob's own pods.")  # fmt: skip
@click.option("--only", "parts", type=click.Choice([part.value for part in Part]), multiple=True,
              help="Print these parts only; may be repeated.")  # fmt: skip
@click.option("--context", envvar=CONTEXT_VARIABLE, default="", metavar="NAME",
              help="Look at this cluster, to leave out what others installed there (also "
              f"{CONTEXT_VARIABLE}).")  # fmt: skip
@click.option("--kubeconfig", default="", metavar="FILE", type=click.Path(),
              help="The kubeconfig file of --context, without which its current one is meant. "
              "Default: KUBECONFIG, else ~/.kube/config.")  # fmt: skip
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml",
              show_default=True, help="YAML documents, or JSON: one List.")  # fmt: skip
def manifests(
    namespace: str,
    namespaces: tuple[str, ...],
    image: str,
    replicas: int,
    scheduler: str,
    beside_volcano: bool,
    take_over: bool,
    volcano_namespace: str,
    no_webhook: bool,
    no_crds: bool,
    no_secrets: bool,
    allowed: tuple[str, ...],
    third_party_plugins: bool,
    priority_class: str,
    parts: tuple[str, ...],
    context: str,
    kubeconfig: str,
    output: str,
) -> int:
    """Print what is to be installed on a cluster: vcjob manifests | kubectl apply -f -

    Each right that vcjob gets has a reason in docs/security.md.
    """
    installation = Installation(
        namespace=namespace,
        namespaces=namespaces,
        image=image,
        replicas=replicas,
        scheduler=scheduler,
        webhook=not no_webhook,
        secrets=not no_secrets,
        beside_volcano=beside_volcano,
        take_over=take_over,
        third_party_plugins=third_party_plugins,
        allowed_annotations=tuple(dict.fromkeys(allowed)),
        priority_class=priority_class,
        volcano_namespace=volcano_namespace,
    )
    found = _look(context, kubeconfig, volcano_namespace)
    if found and found.has_volcano and not beside_volcano:
        click.echo("vcjob: Volcano is installed there", err=True)
        installation = msgspec.structs.replace(installation, beside_volcano=True)
    wanted = {Part(part) for part in parts} or _usual_parts(beside_volcano, no_crds, found)
    ordered = [part for part in Part if part in wanted]
    objects = [
        obj
        for part in ordered
        for obj in objects_of(part, installation, _configurations(installation))
        if not (found and _is_others(obj, found))
    ]
    told = list(
        notes(
            installation,
            wanted,
            looked=found is not None,
            defines_queues=found is not None and found.defines_queues,
        )
    )
    for note in told:
        click.echo(f"vcjob: {note}", err=True)
    stream = sys.stdout.buffer
    if output == "json":
        write_json(objects, stream)
    else:
        stream.write("".join(_comment(note) for note in told).encode())
        write_yaml(objects, stream)
    stream.flush()
    return ExitCode.COMPLETED


def _usual_parts(beside_volcano: bool, no_crds: bool, found: _Found | None) -> set[Part]:
    """What is printed unless the user says which parts."""
    parts = set(Part)
    if beside_volcano:
        return parts - {Part.CRDS, Part.QUEUES}
    if no_crds:
        return parts - {Part.CRDS}
    # kubectl refuses Queues while the API server does not know the kind yet.
    return parts if found and found.defines_queues else parts - {Part.QUEUES}


def _configurations(installation: Installation) -> list[Object]:
    return webhook_configurations(installation.namespace) if installation.has_webhook else []


def _look(context: str, kubeconfig: str, volcano_namespace: str) -> _Found | None:
    """What the cluster of a context has; None if none was named. Raises VcjobError."""
    options = TargetOptions(context, kubeconfig)
    if options.local:
        return None
    server = find_server(options)
    click.echo(f"vcjob: context {server.name} ({server.url})", err=True)

    async def look() -> _Found:
        async with KubernetesCluster.of(server) as cluster:
            return await _look_at(cluster, volcano_namespace)

    return asyncio.run(look())


async def _look_at(cluster: Cluster, volcano_namespace: str) -> _Found:
    others = set()
    defines_queues = False
    plain = Installation()
    for part in (Part.CRDS, Part.QUEUES):
        for obj in objects_of(part, plain):
            present = await _find(cluster, _KEPT[obj["kind"]], "", obj["metadata"]["name"])
            if present is None:
                continue
            if not is_ours(present):
                others.add(_key(obj))
            defines_queues |= part is Part.CRDS and obj["spec"]["names"]["kind"] == QUEUE.kind
    leases = [await _find(cluster, LEASE, volcano_namespace, name) for name in VOLCANO_LEASES]
    return _Found(frozenset(others), defines_queues, any(leases))


async def _find(cluster: Cluster, kind: Kind, namespace: str, name: str) -> Object | None:
    try:
        return await cluster.get(kind, namespace, name)
    except NotFound:
        return None


def _is_others(obj: Object, found: _Found) -> bool:
    """Whether the cluster has this object from somebody else, which is said."""
    if _key(obj) not in found.others:
        return False
    shown = f"{obj['kind']} {obj['metadata']['name']}"
    click.echo(f"vcjob: {shown} is there and not ours: left out", err=True)
    return True


def _key(obj: Object) -> tuple[str, str]:
    return obj["kind"], obj["metadata"]["name"]


def _comment(note: str) -> str:
    return "".join(f"# {line}\n" for line in _lines(note)) + "#\n"


def _lines(note: str) -> Iterator[str]:
    yield from textwrap.wrap(note, _WIDTH, break_long_words=False, break_on_hyphens=False)
