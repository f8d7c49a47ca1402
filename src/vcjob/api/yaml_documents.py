"""YAML text to JSON values, with the position of every part, within limits.

The C parser of PyYAML delivers events; this module builds values from them with a stack of its
own, so that neither depth nor aliases can exhaust anything: what an alias stands for is counted
as if it had been written out. PyYAML's own constructors do neither, and know other types than the
Kubernetes tools.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from vcjob.api.yaml_faults import UnreadableYaml, YamlFault, syntax_error
from vcjob.api.yaml_values import UnreadableScalar, read_key, read_scalar

MOST_NODES = 200_000
MOST_CHARACTERS = 16 * 1024 * 1024
MOST_DEPTH = 100

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE_TAG = "tag:yaml.org,2002:merge"
_COLLECTION_TAGS = (None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


class Position(msgspec.Struct, frozen=True, gc=False):
    """Where a value stands (line and column from 1), and where its parts stand."""

    line: int
    column: int
    parts: dict[str, "Position"] | list["Position"] | None = None


class Value(msgspec.Struct, frozen=True):
    """A value with its position, and how much it is when aliases are written out."""

    value: Any
    position: Position
    nodes: int = 1
    characters: int = 0
    depth: int = 0


class _Frame:
    """A mapping or list that is being read."""

    def __init__(self, event: Any, is_mapping: bool) -> None:
        self.anchor: str | None = event.anchor
        self.line, self.column = event.start_mark.line + 1, event.start_mark.column + 1
        self.mapping: dict[str, Any] = {}
        self.items: list[Any] = []
        self.parts: dict[str, Position] = {}
        self.item_parts: list[Position] = []
        self.is_mapping = is_mapping
        self.key: str | None = None
        self.key_line = self.key_column = 0
        self.merging = False
        self.merges: list[Value] = []
        self.nodes, self.characters, self.depth = 1, 0, 0

    def close(self) -> Value:
        value: Any = self.mapping if self.is_mapping else self.items
        parts: Any = self.parts if self.is_mapping else self.item_parts
        position = Position(self.line, self.column, parts)
        return Value(value, position, self.nodes, self.characters, self.depth)


class YamlReader:
    """Reads the documents of one file; the limits hold for all of them together.

    ``faults`` collects what is wrong but leaves a document readable.
    """

    def __init__(self) -> None:
        self.faults: list[YamlFault] = []
        self._first_line = 1
        self._nodes = 0
        self._characters = 0
        self._start()

    def read(self, text: str, first_line: int) -> Iterator[Value]:
        """Yield each document of ``text``, whose first line has this number in the file.

        Raises UnreadableYaml where the text can be read no further.
        """
        self._first_line = first_line
        self._start()
        try:
            for event in yaml.parse(text, Loader=_LOADER):
                if isinstance(event, yaml.DocumentStartEvent):
                    self._start()
                elif isinstance(event, yaml.DocumentEndEvent):
                    if self._root is not None:
                        yield self._root
                else:
                    self._take(event)
        except yaml.MarkedYAMLError as error:
            raise syntax_error(error, text, first_line) from error
        except yaml.YAMLError as error:
            raise UnreadableYaml(f"this is not YAML: {error}", "", first_line, 1) from error

    def _start(self) -> None:
        self._root: Value | None = None
        self._stack: list[_Frame] = []
        self._anchors: dict[str, Value] = {}

    def _take(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._take_scalar(event)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._open(event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            frame = self._stack.pop()
            self._apply_merges(frame)
            value = frame.close()
            if frame.anchor:
                self._anchors[frame.anchor] = value
            self._put(value, event)
        elif isinstance(event, yaml.AliasEvent):
            self._take_alias(event)

    def _take_scalar(self, event: Any) -> None:
        plain = not event.style
        tag = event.tag
        frame = self._stack[-1] if self._stack else None
        self._count(event, 1, len(event.value))
        try:
            if frame and frame.is_mapping and frame.key is None and not frame.merging:
                if (plain and event.value == "<<" and tag is None) or tag == _MERGE_TAG:
                    frame.merging = True
                    return
                key = read_key(event.value, plain=plain, tag=tag)
                self._start_entry(frame, key, event)
                if event.anchor:
                    self._anchors[event.anchor] = self._scalar(key, event)
                return
            value = self._scalar(read_scalar(event.value, plain=plain, tag=tag), event)
        except UnreadableScalar as error:
            raise self._stop(str(error), "put texts in quotes", event) from error
        if event.anchor:
            self._anchors[event.anchor] = value
        self._put(value, event)

    def _scalar(self, value: Any, event: Any) -> Value:
        position = Position(self._line(event), event.start_mark.column + 1)
        return Value(value, position, 1, len(event.value))

    def _start_entry(self, frame: _Frame, key: str, event: Any) -> None:
        frame.key = key
        frame.key_line, frame.key_column = self._line(event), event.start_mark.column + 1
        if key in frame.mapping:
            earlier = frame.parts[key]
            self.faults.append(
                YamlFault(
                    f'the key "{key}" is given twice in one object',
                    f"it was given before in line {earlier.line}; keep one of the two",
                    frame.key_line,
                    frame.key_column,
                )
            )

    def _open(self, event: Any) -> None:
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in _COLLECTION_TAGS:
            raise self._stop(f"the tag {event.tag} has no meaning in a manifest", "", event)
        parent = self._stack[-1] if self._stack else None
        if parent and parent.is_mapping and parent.key is None and not parent.merging:
            raise self._stop(
                "a key must be a text, not an object or a list",
                "put the text in quotes if it begins with { or [; a {{ … }} is a template that "
                "must be filled in first",
                event,
            )
        if len(self._stack) >= MOST_DEPTH:
            raise self._too_deep(event)
        self._count(event, 1, 0)
        frame = _Frame(event, is_mapping)
        frame.line = self._line(event)
        self._stack.append(frame)

    def _take_alias(self, event: Any) -> None:
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            is_open = any(frame.anchor == event.anchor for frame in self._stack)
            message = "contains itself" if is_open else "is not defined before this line"
            raise self._stop(
                f"the alias *{event.anchor} {message}",
                "put texts that begin with * in quotes",
                event,
            )
        frame = self._stack[-1] if self._stack else None
        if frame and frame.is_mapping and frame.key is None and not frame.merging:
            if not isinstance(anchored.value, str):
                raise self._stop("a key must be a text", "", event)
            self._start_entry(frame, anchored.value, event)
            return
        self._count(event, anchored.nodes, anchored.characters)
        if len(self._stack) + anchored.depth > MOST_DEPTH:
            raise self._too_deep(event)
        self._put(msgspec.structs.replace(anchored, value=_copy(anchored.value)), event)

    def _put(self, value: Value, event: Any) -> None:
        if not self._stack:
            self._root = value
            return
        frame = self._stack[-1]
        frame.nodes += value.nodes
        frame.characters += value.characters
        frame.depth = max(frame.depth, value.depth + 1)
        if frame.merging:
            self._note_merge(frame, value, event)
        elif frame.is_mapping and frame.key is not None:
            frame.mapping[frame.key] = value.value
            frame.parts[frame.key] = Position(
                frame.key_line, frame.key_column, value.position.parts
            )
            frame.key = None
        else:
            frame.items.append(value.value)
            frame.item_parts.append(value.position)

    def _note_merge(self, frame: _Frame, value: Value, event: Any) -> None:
        parts = value.position.parts
        if isinstance(value.value, dict):
            frame.merges.append(value)
        elif isinstance(value.value, list) and all(isinstance(part, dict) for part in value.value):
            positions = parts if isinstance(parts, list) else []
            frame.merges += map(Value, value.value, positions)
        else:
            raise self._stop("<< takes an object or a list of objects", "", event)
        frame.merging = False

    def _apply_merges(self, frame: _Frame) -> None:
        """Keys written in the object itself win, then those of earlier merges."""
        for merge in frame.merges:
            parts = merge.position.parts
            for key, item in merge.value.items():
                if key not in frame.mapping and isinstance(parts, dict):
                    frame.mapping[key] = item
                    frame.parts[key] = parts[key]

    def _count(self, event: Any, nodes: int, characters: int) -> None:
        self._nodes += nodes
        self._characters += characters
        if self._nodes > MOST_NODES or self._characters > MOST_CHARACTERS:
            raise self._stop(
                f"the file is too big: with aliases written out it has more than "
                f"{MOST_NODES} values or {MOST_CHARACTERS >> 20} MiB of text",
                "split it; if it uses anchors and aliases (& and *), use fewer",
                event,
            )

    def _too_deep(self, event: Any) -> UnreadableYaml:
        return self._stop(
            f"the document is nested deeper than {MOST_DEPTH} levels",
            "no object of the Kubernetes API is; check brackets and indentation",
            event,
        )

    def _stop(self, message: str, hint: str, event: Any) -> UnreadableYaml:
        return UnreadableYaml(message, hint, self._line(event), event.start_mark.column + 1)

    def _line(self, event: Any) -> int:
        return int(event.start_mark.line) + self._first_line


def _copy(value: Any) -> Any:
    """A copy without shared parts; at most MOST_DEPTH deep, because nothing read is deeper."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value
