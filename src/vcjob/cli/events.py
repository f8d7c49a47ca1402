"""``vcjob events``: what was told about Jobs and their pods."""

import click
import msgspec

from vcjob.api.kinds import EVENT, JOB
from vcjob.api.types import Object
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.following import changes
from vcjob.cli.output import output_option, print_objects
from vcjob.cli.selection import Reference, ReferenceType, find_job, job_of, selects
from vcjob.cli.tables import age, print_table, shown
from vcjob.cli.target import Target, on_target
from vcjob.controller.cluster import EventType

_COLUMNS = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")


class _Wanted(msgspec.Struct, frozen=True):
    """Which Events are shown: of what ``reference`` names (``jobs`` are all that there are).

    Those of an earlier Job of the name were told before ``since``, when this one was made.
    """

    reference: Reference | None
    since: str
    jobs: list[str]
    warnings: bool

    def includes(self, event: Object) -> bool:
        """Whether an Event is one of them."""
        if self.warnings and event.get("type") != "Warning":
            return False
        if self.reference is None:
            return True
        name = str((event.get("involvedObject") or {}).get("name", ""))
        part, job = self.reference.part, self.reference.job
        if job_of(name, self.jobs) != job or last_seen(event) < self.since:
            return False
        return not part or selects(part, job, {"metadata": {"name": name}})


@click.command()
@click.argument("reference", required=False, type=ReferenceType(), metavar="[JOB[/POD]]")
@click.option("-A", "--all-namespaces", is_flag=True, help="Events of every namespace.")
@click.option("-w", "--watch", is_flag=True, help="Go on with what is told from now on.")
@click.option("--warnings", is_flag=True, help="Only warnings.")
@output_option(("json", "yaml", "name"))
@on_target
async def events(
    target: Target,
    reference: Reference | None,
    all_namespaces: bool,
    watch: bool,
    warnings: bool,
    output: str | None,
) -> int:
    """Show the Events of the namespace, of JOB with its pods, or of one pod."""
    if watch and output:
        raise click.UsageError("--watch does not go together with --output")
    namespace = None if all_namespaces else target.namespace
    since = ""
    if reference is not None:
        since = (await find_job(target, reference.job))["metadata"]["creationTimestamp"]
    jobs = [job["metadata"]["name"] for job in (await target.cluster.list(JOB, namespace)).items]
    wanted = _Wanted(reference, since, jobs, warnings)
    listed = (await target.cluster.list(EVENT, namespace)).items
    chosen = [one for one in listed if wanted.includes(one)]
    chosen.sort(key=_order)
    if output:
        print_objects(chosen, output, single=False)
    elif chosen:
        print_events(chosen, all_namespaces=all_namespaces)
    elif not watch:
        what = "warnings" if warnings else "Events"
        click.echo(f"vcjob: there are no {what} yet", err=True)
    if watch:
        await _watch(target, namespace, listed, wanted)
    return ExitCode.COMPLETED


async def events_of(target: Target, objects: list[Object]) -> list[Object]:
    """The Events about these objects, the latest last."""
    uids = {obj["metadata"]["uid"] for obj in objects}
    listed = await target.cluster.list(EVENT, objects[0]["metadata"]["namespace"])
    found = [one for one in listed.items if (one.get("involvedObject") or {}).get("uid") in uids]
    return sorted(found, key=_order)


def print_events(chosen: list[Object], *, all_namespaces: bool = False) -> None:
    """Print Events as a table."""
    heading = ("NAMESPACE", *_COLUMNS) if all_namespaces else _COLUMNS
    rows = []
    for one in chosen:
        where = [one["metadata"].get("namespace", "")] if all_namespaces else []
        rows.append([*where, *_row(one)])
    print_table(heading, rows)


def last_seen(event: Object) -> str:
    """When an Event was told last (RFC 3339); both generations of the API's fields are known."""
    series = event.get("series") or {}
    return str(
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event["metadata"].get("creationTimestamp", "")
    )


def _order(event: Object) -> tuple[str, int]:
    """What Events are sorted by: within a second, versions tell which was written first.

    Clients may not compare versions where a server makes them of anything but numbers.
    """
    version = str(event["metadata"].get("resourceVersion", ""))
    return last_seen(event), int(version) if version.isdecimal() else 0


def _row(event: Object) -> list[str]:
    involved = event.get("involvedObject") or {}
    count = (event.get("series") or {}).get("count") or event.get("count") or 1
    seen = age(last_seen(event))
    if count > 1:
        seen += f" (x{count} over {age(event.get('firstTimestamp') or last_seen(event))})"
    return [
        seen,
        event.get("type", ""),
        event.get("reason", ""),
        f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}",
        str(event.get("message", "")).strip(),
    ]


async def _watch(
    target: Target,
    namespace: str | None,
    listed: list[Object],
    wanted: _Wanted,
) -> None:
    counts = {one["metadata"]["uid"]: one.get("count", 1) for one in listed}
    async for kind, one in changes(target.cluster, EVENT, namespace):
        uid, count = one["metadata"]["uid"], one.get("count", 1)
        if kind is EventType.DELETED or counts.get(uid) == count:
            continue
        counts[uid] = count
        if wanted.includes(one):
            click.echo("   ".join(map(shown, _row(one))))
