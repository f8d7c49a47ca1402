"""``vcjob plugins``: which plugins there are, what they do, and which arguments they take."""

from typing import Any

import click
import msgspec
import yaml

from vcjob.api.problems import printable
from vcjob.cli.exit_codes import ExitCode
from vcjob.plugins.arguments import Argument, Value
from vcjob.plugins.base import Plugin, PluginError
from vcjob.plugins.registry import Registry, Source, installed_plugins

_WIDEST_ARGUMENT = 40


class _Shown(msgspec.Struct, frozen=True):
    """A plugin and where it comes from; ``error`` is why there is none, in a sentence."""

    source: Source
    plugin: Plugin | None
    error: str = ""


@click.command(
    epilog="The exit code is 0; 1 if the plugin NAME cannot be used, 2 if there is no such plugin."
)
@click.argument("name", required=False)
@click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text",
              show_default=True, help="Text for people, JSON or YAML for programs.")  # fmt: skip
@click.pass_context
def plugins(ctx: click.Context, name: str | None, output: str) -> int:
    """List the plugins that Jobs can use, or show the one called NAME.

    Beside vcjob's own these are the plugins of installed packages (entry point vcjob.plugins).
    Looking at a plugin of a package runs its code.
    """
    registry = installed_plugins(third_party=True)
    try:
        names = [registry.source(name).name] if name else registry.names()
    except PluginError as error:
        raise click.UsageError(str(error)) from error
    shown = [_look_at(registry, one) for one in names]
    unused = [sentence for of, sentence in registry.unused if not name or of == name]
    if output == "text":
        _print_text(ctx, shown)
        for sentence in unused:
            click.echo(f"warning: {printable(sentence)}", err=True)
    else:
        _print_for_programs({"plugins": list(map(_as_object, shown)), "unused": unused}, output)
    return ExitCode.FAILED if name and shown[0].error else ExitCode.COMPLETED


def _look_at(registry: Registry, name: str) -> _Shown:
    source = registry.source(name)
    try:
        return _Shown(source, registry.find(name))
    except PluginError as error:
        return _Shown(source, None, str(error))


def _print_text(ctx: click.Context, shown: list[_Shown]) -> None:
    for position, one in enumerate(shown):
        if position:
            click.echo()
        formatter = ctx.make_formatter()
        formatter.write_text(printable(f"{one.source.name} ({_origin(one.source)})"))
        with formatter.indentation():
            if one.plugin:
                _write_plugin(formatter, one.plugin)
            else:
                formatter.write_text(printable(f"Cannot be used: {one.error}"))
        click.echo(formatter.getvalue(), nl=False)


def _write_plugin(formatter: click.HelpFormatter, plugin: Plugin) -> None:
    formatter.write_text(printable(plugin.help))
    if plugin.requires:
        needed = " and ".join(plugin.requires)
        formatter.write_text(printable(f"Brings {needed}, which it needs."))
    rows = [(printable(_usage(one)), printable(_meaning(one))) for one in plugin.arguments]
    if rows:
        formatter.write_dl(rows, col_max=_WIDEST_ARGUMENT)


def _origin(source: Source) -> str:
    return f"{source.package} {source.version}".rstrip()


def _usage(argument: Argument) -> str:
    return f"--{argument.name}={argument.type_name}"


def _meaning(argument: Argument) -> str:
    default = _as_written(argument.default)
    return f"{argument.help}{f' (default {default})' if default else ''}"


def _as_written(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _as_object(one: _Shown) -> dict[str, Any]:
    """A plugin for programs: every field is always there."""
    plugin = one.plugin
    return {
        "name": one.source.name,
        "package": one.source.package,
        "version": one.source.version,
        "help": plugin.help if plugin else "",
        "arguments": [
            {
                "name": argument.name,
                "type": argument.type_name,
                "default": argument.default,
                "help": argument.help,
                "secret": argument.secret,
                "port": argument.port,
            }
            for argument in (plugin.arguments if plugin else ())
        ],
        "requires": list(plugin.requires) if plugin else [],
        "kinds": [
            {"apiVersion": kind.api_version, "kind": kind.kind}
            for kind in (plugin.kinds if plugin else ())
        ],
        "error": one.error,
    }


def _print_for_programs(report: dict[str, Any], output: str) -> None:
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(report)))
    else:
        text = yaml.dump(report, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
        click.echo(text, nl=False)
