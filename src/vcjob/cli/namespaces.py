"""Options that name namespaces."""

import click

from vcjob.api.validation import dns_1123_label


def namespaces_option(
    ctx: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[str, ...]:
    """A callback of options: names separated by commas, each once; without the option none."""
    if value is None:
        return ()
    names = tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
    if not names:  # an empty tuple means all namespaces: nobody asked for that
        raise click.BadParameter(f'"{value}" names no namespace', ctx, parameter)
    for name in names:
        if wrong := dns_1123_label(name):
            raise click.BadParameter(f'the name "{name}" must {wrong}', ctx, parameter)
    return names


def own_namespace_option(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """A callback of options: one name, or none for that of whoever is started."""
    return namespace_option(ctx, parameter, value) if value else ""


def namespace_option(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """A callback of options: one name."""
    names = namespaces_option(ctx, parameter, value)
    if len(names) != 1:
        raise click.BadParameter("must be one name", ctx, parameter)
    return names[0]
