"""Lists: what is selected, as of which version, and page by page.

Source: Kubernetes documentation, "API Concepts" (retrieving large results sets in chunks; resource
versions). Pages of one list are taken from the objects as they were when its first page was asked
for; they are kept for a while and in a bounded number, and forgotten ones are answered with 410.
"""

import base64
import binascii
import secrets
from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from vcjob.api.kinds import EVENT
from vcjob.api.types import Object, key_of
from vcjob.local.apiserver import query
from vcjob.local.apiserver.answers import LongAnswer
from vcjob.local.apiserver.event_shapes import core_field_selector
from vcjob.local.apiserver.forms import FORMS_OF_LISTS, many
from vcjob.local.apiserver.negotiation import negotiate
from vcjob.local.apiserver.paths import Place
from vcjob.local.apiserver.query import Query
from vcjob.local.apiserver.resources import Resource
from vcjob.local.apiserver.selectors import (
    Wanted,
    both,
    parse_field_selector,
    parse_label_selector,
)
from vcjob.local.apiserver.status import Cause, Refused
from vcjob.local.store import Store

_MOST_SNAPSHOTS = 64
_EXACT, _NOT_OLDER = "Exact", "NotOlderThan"


class _Snapshot(msgspec.Struct, frozen=True):
    """What is left of a list whose first pages were given out."""

    items: Sequence[Object]
    version: str
    question: str


class _Continue(msgspec.Struct, frozen=True):
    """What a continue token says: which snapshot, and where in it."""

    snapshot: str
    start: int


class Lists:
    """Answers to list requests, with the lists that are given out in pages."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._snapshots: OrderedDict[str, _Snapshot] = OrderedDict()

    async def answer(
        self, resource: Resource, place: Place, asked: Query, accept: str
    ) -> LongAnswer:
        """The list that a request asks for; raises Refused."""
        media = negotiate(accept, FORMS_OF_LISTS)
        if query.flag(asked, "sendInitialEvents") is not None:
            raise Refused(422, "sendInitialEvents is forbidden for list")
        limit = query.count(asked, "limit") or 0
        token = asked.get("continue", "")
        question = (
            f"{resource.kind}|{place}|{asked.get('labelSelector')}|{asked.get('fieldSelector')}"
        )
        if token:
            if asked.get("resourceVersionMatch"):
                raise Refused(422, "resourceVersionMatch is forbidden when continue is provided")
            if query.version(asked):
                raise Refused(400, "resourceVersion and continue cannot be asked for together")
            name, start, snapshot = self._continued(token, question)
        else:
            check_version(asked, self._store.version)
            wanted = selection(resource, place, asked)
            found = await self._store.select(resource.stored, place.namespace or None, wanted)
            items = sorted(found.items, key=key_of)
            name, start = secrets.token_hex(8), 0
            snapshot = _Snapshot(items, found.resource_version, question)
        end = start + limit if limit else len(snapshot.items)
        metadata: Object = {"resourceVersion": snapshot.version}
        if end < len(snapshot.items):
            self._keep(name, snapshot)
            metadata["continue"] = _token(_Continue(name, end))
            if not asked.get("labelSelector") and not asked.get("fieldSelector"):
                metadata["remainingItemCount"] = len(snapshot.items) - end
        elif token:
            self._snapshots.pop(name, None)
        include = query.choice(asked, "includeObject", "None", "Metadata", "Object")
        return many(resource, snapshot.items[start:end], metadata, media, include)

    def _continued(self, token: str, question: str) -> tuple[str, int, _Snapshot]:
        try:
            place = msgspec.json.decode(base64.urlsafe_b64decode(token), type=_Continue)
        except (msgspec.DecodeError, binascii.Error, ValueError) as error:
            raise Refused(400, "the continue parameter was not given out by this server") from error
        snapshot = self._snapshots.get(place.snapshot)
        if snapshot is None:
            raise Refused(410, "the list that is to be continued is too old: list again")
        if snapshot.question != question or place.start < 0:
            raise Refused(400, "the continue parameter belongs to another list")
        return place.snapshot, place.start, snapshot

    def _keep(self, name: str, snapshot: _Snapshot) -> None:
        self._snapshots[name] = snapshot
        self._snapshots.move_to_end(name)
        while len(self._snapshots) > _MOST_SNAPSHOTS:
            self._snapshots.popitem(last=False)


def selection(resource: Resource, place: Place, asked: Query) -> Wanted:
    """Which objects a list, watch or deletecollection is about; raises Refused (400)."""
    fields = asked.get("fieldSelector", "")
    if resource.stored == EVENT != resource.kind:
        fields = core_field_selector(fields)
    named = (lambda obj: obj["metadata"]["name"] == place.name) if place.name else None
    return both(
        named,
        parse_label_selector(asked.get("labelSelector", "")),
        parse_field_selector(fields, resource.stored, resource.selectable),
    )


def check_version(asked: Query, current: int) -> None:
    """Whether the objects of now are what a list or get asks for; raises Refused.

    Only the present is kept, so that an exact version is answered only while it is the latest.
    """
    match_rule = query.choice(asked, "resourceVersionMatch", _EXACT, _NOT_OLDER)
    version = query.version(asked)
    if match_rule and version is None:
        raise Refused(422, "resourceVersionMatch is forbidden unless resourceVersion is provided")
    if match_rule == _EXACT and version == 0:
        raise Refused(422, 'resourceVersionMatch "Exact" is forbidden for resourceVersion "0"')
    if not version:
        return
    if version > current:
        raise too_new(version, current)
    if match_rule == _EXACT and version < current:
        raise Refused(410, f"resource version {version} is too old: list again")


def too_new(version: int, current: int) -> Refused:
    """A version that is not reached yet (of another server, or of an earlier life of this one)."""
    return Refused(
        504,
        f"Too large resource version: {version}, current: {current}",
        causes=[Cause("ResourceVersionTooLarge", "Too large resource version")],
        details={"retryAfterSeconds": 1},
    )


def _token(place: _Continue) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode()
