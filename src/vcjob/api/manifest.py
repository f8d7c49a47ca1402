"""Manifest text to objects that know where each of their parts stands.

Reads YAML and JSON, several documents, and ``v1`` Lists (whose items become documents of their
own). Does no I/O: whoever calls has read the file.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from vcjob.api.problems import Path, Problem
from vcjob.api.types import Object
from vcjob.api.yaml_documents import Position, Value, YamlReader
from vcjob.api.yaml_faults import UnreadableYaml, YamlFault

MOST_BYTES = 4 * 1024 * 1024

_LINE_END = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
# YAML 1.1, production c-printable; surrogates cannot be encoded.
_NOT_PRINTABLE = re.compile(
    r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
# Directives (%YAML …) belong to the document that they stand before.
_DOCUMENT_START = re.compile(r"^(?:%[^\n]*\n)*---(?=\s|$)", re.MULTILINE)
_SURROGATE_PAIR = re.compile(r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})", re.IGNORECASE)


class Document(msgspec.Struct, frozen=True):
    """One object of a manifest. ``index`` counts documents of the file from 0."""

    file: str
    index: int
    object: Object
    position: Position

    def locate(self, path: Path) -> tuple[int, int]:
        """Line and column (from 1) of the part at ``path``, or of the nearest part around it."""
        position = self.position
        for key in path:
            part = _part(position, key)
            if part is None:
                break
            position = part
        return position.line, position.column

    def place(self, problem: Problem) -> Problem:
        """The problem with file, document, line and column filled in."""
        line, column = self.locate(problem.path)
        return msgspec.structs.replace(
            problem, file=self.file, document=self.index, line=line, column=column
        )


def _part(position: Position, key: str | int) -> Position | None:
    parts = position.parts
    if isinstance(parts, dict):
        return parts.get(key) if isinstance(key, str) else None
    if isinstance(parts, list) and isinstance(key, int) and 0 <= key < len(parts):
        return parts[key]
    return None


class Manifest(msgspec.Struct, frozen=True):
    """The objects of a manifest, and what is wrong with its text."""

    documents: tuple[Document, ...]
    problems: tuple[Problem, ...]


def parse(text: bytes | str, file: str = "") -> Manifest:
    """Read a manifest; never raises. ``file`` is what problems call it."""
    if len(text) > MOST_BYTES:
        return _refuse(
            file,
            f"the file has more than {MOST_BYTES >> 20} MiB",
            "is this a manifest? The Kubernetes API takes no object beyond 1.5 MiB",
        )
    if isinstance(text, bytes):
        data = text
        try:
            text = _decode(data)
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            return _refuse(
                file,
                "the file is not text in UTF-8",
                "is this a manifest? It looks like a binary file or has another encoding",
                line,
            )
    text = text.removeprefix("\ufeff")
    if unprintable := _NOT_PRINTABLE.search(text):
        before = _LINE_END.split(text[: unprintable.start()])
        return _refuse(
            file,
            f"the file contains the character U+{ord(unprintable[0]):04X}, which no YAML file may",
            "is this a manifest? It looks like a binary file; within double quotes such a "
            "character can be written as \\xNN or \\uNNNN",
            len(before),
            len(before[-1]) + 1,
        )
    return _parse_text(text, file)


def _decode(text: bytes) -> str:
    if text[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return text.decode("utf-16")
    return text.decode("utf-8")


def _refuse(file: str, message: str, hint: str, line: int = 1, column: int = 1) -> Manifest:
    return Manifest((), (Problem(message, hint=hint, file=file, line=line, column=column),))


def _parse_text(text: str, file: str) -> Manifest:
    if text.lstrip()[:1] in ("{", "["):
        # JSON writes characters beyond U+FFFF as two escapes, which YAML does not know.
        text = _SURROGATE_PAIR.sub(_one_escape, text)
    documents: list[Document] = []
    problems: list[Problem] = []
    reader = YamlReader()
    number = -1
    for line, chunk in _chunks(text):
        try:
            for root in reader.read(chunk, line):
                number += 1
                documents += _expand(root, file, number, problems)
        except UnreadableYaml as error:
            number += 1
            reader.faults.append(YamlFault(str(error), error.hint, error.line, error.column))
        problems += (_fault_problem(fault, file, number) for fault in reader.faults)
        reader.faults.clear()
    if not documents and not problems:
        return _refuse(file, "the file holds no object", "is it the right file?")
    return Manifest(tuple(documents), tuple(problems))


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    """The text split where documents start, each part with the number of its first line.

    Read apart, a broken document does not hide those behind it.
    """
    starts = [match.start() for match in _DOCUMENT_START.finditer(text)]
    line = 1
    for start, end in pairwise([0, *starts, len(text)]):
        chunk = text[start:end]
        if start or _has_content(chunk):
            yield line, chunk
        line += len(_LINE_END.findall(chunk))


def _one_escape(pair: re.Match[str]) -> str:
    high, low = int(pair[1], 16), int(pair[2], 16)
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"


def _fault_problem(fault: YamlFault, file: str, number: int) -> Problem:
    return Problem(
        fault.message,
        hint=fault.hint,
        file=file,
        document=number,
        line=fault.line,
        column=fault.column,
    )


def _has_content(text: str) -> bool:
    return any(
        line.strip() and not line.lstrip().startswith(("#", "%")) for line in text.splitlines()
    )


def _expand(root: Value, file: str, number: int, problems: list[Problem]) -> list[Document]:
    """The objects of one document: itself, the items of a List, or none if it is empty."""
    value, position = root.value, root.position
    if value is None:
        return []
    if not isinstance(value, dict):
        problems.append(
            Problem(
                f"a manifest holds objects, but this is a {_type_name(value)}",
                hint="an object begins with apiVersion, kind and metadata",
                file=file,
                document=number,
                line=position.line,
                column=position.column,
            )
        )
        return []
    document = Document(file, number, value, position)
    if value.get("apiVersion") != "v1" or value.get("kind") != "List":
        return [document]
    items = value.get("items") or []
    parts = position.parts
    item_positions = parts["items"].parts if isinstance(parts, dict) and "items" in parts else []
    if not isinstance(items, list) or not isinstance(item_positions, list):
        problems.append(document.place(Problem("the items of a List must be a list", ("items",))))
        return []
    return [
        document
        for item, where in zip(items, item_positions, strict=True)
        for document in _expand(Value(item, where), file, number, problems)
    ]


def _type_name(value: object) -> str:
    if isinstance(value, list):
        return "list"
    if isinstance(value, str):
        return "text"
    return "boolean" if isinstance(value, bool) else "number"
