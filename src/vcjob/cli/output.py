"""``-o`` of commands that show objects: one way to print them for programs."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import click
import msgspec

from vcjob.api.kinds import find_kind
from vcjob.api.types import Object
from vcjob.cli.documents import write_yaml

FORMATS = ("json", "yaml", "wide", "name")


def output_option(formats: Sequence[str] = FORMATS) -> Callable[[Any], Any]:
    """The option ``-o``; without it a table is printed, with "wide" one of more columns."""
    wider = " a wider table," if "wide" in formats else ""
    return click.option("-o", "--output", type=click.Choice(formats), default=None,
                        help=f"JSON, YAML,{wider} or names only.")  # fmt: skip


def print_objects(objects: Sequence[Object], output: str, *, single: bool) -> None:
    """Print objects as ``json``, ``yaml`` or ``name``; several as one List unless ``single``."""
    if output == "name":
        for obj in objects:
            click.echo(f"{_resource(obj)}/{obj['metadata']['name']}")
        return
    whole = objects[0] if single else {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    stream = sys.stdout.buffer
    if output == "json":
        stream.write(msgspec.json.format(msgspec.json.encode(whole), indent=4) + b"\n")
    else:
        write_yaml([whole], stream, separated=False)
    stream.flush()


def _resource(obj: Object) -> str:
    """``job.batch.volcano.sh`` or ``pod``, as kubectl names them."""
    kind = find_kind(obj["apiVersion"], obj["kind"])
    group = kind.group if kind else ""
    return f"{obj['kind'].lower()}{f'.{group}' if group else ''}"
