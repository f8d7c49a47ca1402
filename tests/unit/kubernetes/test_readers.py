"""Objects, pages and events out of JSON, by a shape of what is read."""

import json
from typing import Any, TypedDict

import msgspec
import pytest

from vcjob.kubernetes.readers import WHOLE, Reader


class Metadata(TypedDict, total=False):
    name: str
    resourceVersion: str


class Status(TypedDict, total=False):
    phase: str


class Shape(TypedDict, total=False):
    metadata: Metadata
    status: Status


def mark(obj: dict[str, Any]) -> None:
    obj["marked"] = True


READER = Reader(Shape, mark)
OBJECT = {"metadata": {"name": "a", "labels": {}}, "spec": {}, "status": {"phase": "x", "ip": "1"}}
READ = {"metadata": {"name": "a"}, "status": {"phase": "x"}, "marked": True}


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_an_object_is_read_as_its_shape_says_and_finished() -> None:
    assert READER.object(encoded(OBJECT)) == READ
    assert WHOLE.object(encoded(OBJECT)) == OBJECT


def test_a_page_tells_where_the_next_one_begins() -> None:
    metadata = {"resourceVersion": "9", "continue": "there", "remainingItemCount": 3}
    page = READER.page(encoded({"kind": "PodList", "metadata": metadata, "items": [OBJECT]}))
    assert page.items == [READ]
    assert (page.metadata.resource_version, page.metadata.more) == ("9", "there")
    last = READER.page(encoded({"metadata": {"resourceVersion": "9"}, "items": None}))
    assert (last.items, last.metadata.more) == (None, "")


@pytest.mark.parametrize("reader", [READER, WHOLE], ids=["shape", "whole"])
@pytest.mark.parametrize("type_first", [True, False])
def test_an_event_of_an_error_is_whole(reader: Reader, type_first: bool) -> None:
    status = {"kind": "Status", "metadata": {}, "status": "Failure", "code": 410}
    event = {"type": "ERROR", "object": status}
    if not type_first:
        event = dict(reversed(event.items()))
    assert reader.event(encoded(event)).object == status
    bare = {"type": "ERROR", "object": {"code": 410}}
    assert reader.event(encoded(bare)).object == {"code": 410}


def test_an_event_has_the_object_in_its_shape() -> None:
    event = READER.event(encoded({"type": "ADDED", "object": OBJECT}))
    assert (event.type, event.object) == ("ADDED", READ)


@pytest.mark.parametrize("text", [b"", b"[]", b'"a"', b"<html>", b'{"metadata": [], "items": 3}'])
@pytest.mark.parametrize("reader", [READER, WHOLE], ids=["shape", "whole"])
def test_what_is_no_object_is_an_error(reader: Reader, text: bytes) -> None:
    for read in (reader.page, reader.event):
        with pytest.raises(msgspec.DecodeError):
            read(text)
    if not text.startswith(b"{"):
        with pytest.raises(msgspec.DecodeError):
            reader.object(text)
