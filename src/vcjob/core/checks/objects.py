"""Objects beside Jobs in a manifest: which kinds there may be, and what is wrong with one."""

from collections.abc import Iterator

from vcjob.api.kinds import ALL, JOB, Kind, find_kind
from vcjob.api.problems import Problem
from vcjob.api.schema.fields import check_fields, show
from vcjob.api.schema.support import RECORDS
from vcjob.api.suggestions import closest
from vcjob.api.types import Object
from vcjob.core.checks.contents import CONTENTS, check_contents


def kind_of(obj: Object) -> Kind | None:
    """The kind of an object that a manifest may hold, or None."""
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return None
    found = find_kind(api_version, kind)
    return found if found in RECORDS else None


def check_kind(obj: Object) -> Iterator[Problem]:
    """Why ``kind_of`` answers None."""
    for field in ("apiVersion", "kind"):
        value = obj.get(field)
        if not isinstance(value, str) or not value:
            wrong = "lacks" if value is None else f"has {show(value)} as"
            yield Problem(
                f'the object {wrong} the field "{field}"',
                (field,),
                _hint_for_lacking(obj),
            )
            return
    if kind_of(obj) is None:
        hint = _hint_for_kind(obj["apiVersion"], obj["kind"])
        shown = f"{obj['apiVersion'][:100]} {obj['kind'][:100]}"
        yield Problem(f"vcjob has no use for an object of the kind {shown}", ("kind",), hint)


def _hint_for_lacking(obj: Object) -> str:
    named = [item for item in RECORDS if item.kind == obj.get("kind")]
    kind = named[0] if named else JOB
    return f"a {kind.kind} has apiVersion: {kind.api_version} and kind: {kind.kind}"


def _hint_for_kind(api_version: str, kind: str) -> str:
    known = {item.kind: item for item in RECORDS}
    if kind == JOB.kind:
        return f"a Volcano Job has apiVersion: {JOB.api_version}"
    if kind in known:
        return f"{kind} has apiVersion: {known[kind].api_version}"
    if any(item.kind == kind and item.api_version == api_version for item in ALL):
        return f"objects of this kind are made from Jobs; write a Job ({JOB.api_version})"
    best = closest(kind, known)
    if best:
        return f"did you mean {best} ({known[best].api_version})?"
    return f"vcjob takes {', '.join(sorted(known))}"


def check_object(obj: Object, kind: Kind) -> list[Problem]:
    """What is wrong with an object that is not a Job."""
    problems = check_fields(obj, RECORDS[kind])
    metadata = obj.get("metadata")
    if isinstance(metadata, dict) and not metadata.get("name"):
        problems.append(Problem("metadata lacks the name", ("metadata", "name")))
    if kind in CONTENTS:
        problems += check_contents(obj, kind)
    return problems
