"""``vcjob get``: objects of any kind that Jobs are made of, as kubectl shows them."""

from typing import Any

import click

from vcjob.api.kinds import JOB, POD, Kind
from vcjob.api.types import Object
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.kinds import closest_kind, kind_called
from vcjob.cli.output import output_option, print_objects
from vcjob.cli.selection import NothingSelected, ReferenceType, find_job, find_pods
from vcjob.cli.tables import age, print_table
from vcjob.cli.target import Target, on_target


@click.command(
    epilog="KIND is a name that kubectl takes (pods, po, vcjobs, queues, svc, …), or several with "
    "commas; a Job that is called like a kind is shown with: vcjob get jobs NAME."
)
@click.argument("words", nargs=-1, required=True, metavar="KIND [NAME...] | JOB[/POD]")
@click.option("-A", "--all-namespaces", is_flag=True, help="Objects of every namespace.")
@click.option("-l", "--selector", default="", help="Only objects whose labels match.")
@output_option()
@on_target
async def get(
    target: Target,
    words: tuple[str, ...],
    all_namespaces: bool,
    selector: str,
    output: str | None,
) -> int:
    """Show objects: all of a KIND, those called NAME, a Job, or pods of a Job (JOB/worker-0)."""
    kinds, names = chosen(words)
    if not kinds:
        return await _get_by_reference(target, words, output)
    if names and (all_namespaces or selector):
        raise click.UsageError("names do not go together with -A or -l")
    objects: list[Object] = []
    for number, kind in enumerate(kinds):
        namespace = None if all_namespaces or not kind.namespaced else target.namespace
        if output in (None, "wide"):
            if number:
                click.echo()
            await _print_tables(target, kind, namespace, names, selector, output == "wide")
        elif names:
            objects += [await target.cluster.get(kind, namespace or "", name) for name in names]
        else:
            objects += (await target.cluster.list(kind, namespace, selector=selector)).items
    if output not in (None, "wide"):
        print_objects(objects, output or "", single=len(kinds) == len(names) == 1)
    return ExitCode.COMPLETED


def chosen(words: tuple[str, ...]) -> tuple[list[Kind], list[str]]:
    """The kinds and names that words such as ``pods``, ``pods,svc``, ``pod a b``, ``pod/a`` mean.

    There are no kinds if the first word names none.
    """
    first, slash, name = words[0].partition("/")
    kinds = [kind for word in first.split(",") if (kind := kind_called(word))]
    if len(kinds) < first.count(",") + 1:
        return [], []
    return kinds, [*([name] if slash and name else ()), *words[1:]]


async def _get_by_reference(target: Target, words: tuple[str, ...], output: str | None) -> int:
    objects: list[Object] = []
    kinds = set()
    for word in words:
        reference = ReferenceType().convert(word, None, None)
        if reference.part:
            kinds.add(POD)
            objects += (await find_pods(target, reference))[1]
        else:
            kinds.add(JOB)
            try:
                objects.append(await find_job(target, reference.job))
            except NothingSelected as error:
                if not (meant := closest_kind(word)):
                    raise
                raise NothingSelected(f"{error}; or did you mean the kind {meant}?") from error
    if output in (None, "wide"):
        for kind in sorted(kinds):
            names = [obj["metadata"]["name"] for obj in objects if obj["kind"] == kind.kind]
            await _print_tables(target, kind, target.namespace, names, "", output == "wide")
    else:
        print_objects(objects, output or "", single=len(objects) == 1)
    return ExitCode.COMPLETED


async def _print_tables(
    target: Target,
    kind: Kind,
    namespace: str | None,
    names: list[str],
    selector: str,
    wide: bool,
) -> None:
    from vcjob.kubernetes.tables import fetch_table

    tables = [
        await fetch_table(target.cluster.connection, kind, namespace, name, selector=selector)
        for name in names or ("",)
    ]
    columns = tables[0].columns
    visible = [place for place, column in enumerate(columns) if wide or column.priority == 0]
    with_namespace = kind.namespaced and namespace is None
    rows: list[list[Any]] = []
    for table in tables:
        for row in table.rows:
            cells = [_cell(columns[place].type, row.cells[place]) for place in visible]
            where = [row.metadata.get("namespace", "")] if with_namespace else []
            rows.append([*where, *cells])
    if not rows:
        where_text = f' in namespace "{namespace}"' if namespace else ""
        click.echo(f"vcjob: there are no {kind.plural}{where_text}", err=True)
        return
    heading = [columns[place].name.upper() for place in visible]
    print_table([*(["NAMESPACE"] if with_namespace else []), *heading], rows)


def _cell(kind: str, value: Any) -> Any:
    """Dates of printer columns come as dates, and are shown as ages."""
    return age(value) if kind == "date" and isinstance(value, str) else value
