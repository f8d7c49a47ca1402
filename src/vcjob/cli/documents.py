"""Objects as YAML or JSON, an object at a time."""

import re
from collections.abc import Iterable
from typing import BinaryIO

import msgspec
import yaml

from vcjob.api.types import Object


def write_json(objects: Iterable[Object], stream: BinaryIO) -> None:
    """One ``v1`` List, an object a line, written as the objects are made."""
    encode = msgspec.json.Encoder().encode
    stream.write(b'{"apiVersion":"v1","kind":"List","items":[')
    before = b"\n"
    for obj in objects:
        stream.write(before + encode(obj))
        before = b",\n"
    stream.write(b"\n]}\n")


# Texts that some reader of YAML 1.1 or 1.2 takes for a number or boolean, though PyYAML does not.
_AMBIGUOUS = re.compile(r"[-+]?[0-9.][0-9_.]*([eE][-+]?[0-9]+)?|0[xXoObB][0-9a-fA-F_]+|[yYnN]")


class _Dumper(yaml.CSafeDumper):
    """Writes what objects share in full each time, and texts of several lines as blocks."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else "'" if _AMBIGUOUS.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _represent_text)


def write_yaml(objects: Iterable[Object], stream: BinaryIO, *, separated: bool = True) -> None:
    """YAML documents, each written as it is made and after a ``---`` if ``separated``."""
    for obj in objects:
        text = yaml.dump(
            obj,
            Dumper=_Dumper,
            explicit_start=separated,
            sort_keys=False,
            allow_unicode=True,
            width=1_000_000,
        )
        stream.write(text.encode())
