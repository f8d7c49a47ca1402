"""Options that name an address to listen at."""

import ipaddress

import click


class AddressType(click.ParamType[tuple[str, int]]):
    """``HOST:PORT``, ``HOST`` or ``:PORT``; ``default_host`` stands in for a host not given."""

    name = "HOST:PORT"

    def __init__(self, default_host: str = "127.0.0.1") -> None:
        self._default_host = default_host

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Read the option; fails with what would be right."""
        host, colon, port = value.rpartition(":")
        if not colon or value.endswith("]"):
            host, port = value, "0"
        if not (port.isascii() and port.isdigit()):
            self.fail(f"{value!r} is not HOST:PORT, for example 127.0.0.1:6443", param, ctx)
        if len(port) > 5 or int(port) > 65535:
            self.fail(f"{port} is not a port: they end at 65535", param, ctx)
        host = host.strip("[]")
        if not host:
            return self._default_host, int(port)
        try:
            ipaddress.ip_address(host)
        except ValueError:
            meant = "HOST:PORT is, for example, 127.0.0.1:6443"
            self.fail(f"{host!r} is not an address of this machine; {meant}", param, ctx)
        return host, int(port)
