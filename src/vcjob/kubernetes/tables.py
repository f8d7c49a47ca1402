"""Objects as the server would print them: the API's ``Table``."""

from typing import Any

import msgspec

from vcjob.api.kinds import Kind
from vcjob.controller.cluster import Unavailable
from vcjob.kubernetes.connection import Connection, object_path
from vcjob.kubernetes.errors import Asked

_ACCEPT = "application/json;as=Table;v=v1;g=meta.k8s.io"
_PAGE = 500


class Column(msgspec.Struct, frozen=True):
    """A column; ``priority`` 0 is always shown, others on demand."""

    name: str
    type: str = "string"
    priority: int = 0


class Row(msgspec.Struct, frozen=True):
    """The cells of one object, and its metadata."""

    cells: tuple[Any, ...]
    metadata: dict[str, Any] = {}


class Table(msgspec.Struct, frozen=True):
    """Columns and rows."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


class _Wrapped(msgspec.Struct, frozen=True):
    metadata: dict[str, Any] = {}


class _AnswerRow(msgspec.Struct, frozen=True):
    cells: tuple[Any, ...]
    object: _Wrapped = _Wrapped()


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    kind: str
    column_definitions: tuple[Column, ...] = ()
    rows: tuple[_AnswerRow, ...] | None = ()
    metadata: dict[str, Any] = {}


async def fetch_table(
    connection: Connection,
    kind: Kind,
    namespace: str | None = None,
    name: str = "",
    *,
    selector: str = "",
) -> Table:
    """One object (with ``name``) or all of a kind as a table; raises NotFound.

    ``selector`` is a label selector in the API's own words.
    """
    asked = Asked("get" if name else "list", kind, namespace or "", name)
    path = object_path(kind, namespace or "", name)
    query = [("labelSelector", selector)] if selector else []
    query += [] if name else [("limit", str(_PAGE))]
    columns: tuple[Column, ...] = ()
    rows: list[Row] = []
    more = ""
    while True:
        pieces = [*query, ("continue", more)] if more else query
        answer = await connection.request("GET", path, asked, query=pieces, accept=_ACCEPT)
        try:
            table = msgspec.json.decode(answer.body, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unavailable(f"{connection.name} answered no Table") from error
        if table.kind != "Table":
            raise Unavailable(f"{connection.name} answered no Table but {table.kind}")
        columns = columns or table.column_definitions
        rows += [Row(row.cells, row.object.metadata) for row in table.rows or ()]
        more = table.metadata.get("continue") or ""
        if not more:
            return Table(columns, tuple(rows))
