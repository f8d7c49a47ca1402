"""The way to a server: proxies, and sockets that notice when the other side is gone."""

import ipaddress
import socket
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from vcjob.kubernetes.errors import KubeconfigError
from vcjob.kubernetes.server import Server
from vcjob.kubernetes.socks import SCHEMES

_PROXIES = ("http", "https", *SCHEMES)
_ALIVE_AFTER_SECONDS = 30
"""A peer that is gone without a word is noticed after this, and four questions 10 s apart."""


def proxy_of(server: Server) -> str | None:
    """The proxy of the kubeconfig file, else the environment's, as Go's clients choose it."""
    parts = urlsplit(server.url)
    proxy = server.proxy
    if not proxy and not is_loopback(server.url):
        told = getproxies()
        try:
            port = parts.port or {"http": 80, "https": 443}[parts.scheme]
        except ValueError as error:
            raise KubeconfigError(f"{server.url} is not the URL of a server") from error
        if not _goes_straight(parts.hostname or "", port, told.get("no", "")):
            proxy = told.get(parts.scheme, "")
            if proxy and "://" not in proxy:
                proxy = f"http://{proxy}"
    if proxy and urlsplit(proxy).scheme not in _PROXIES:
        raise KubeconfigError(
            f"the proxy {proxy} of {server.name} is of a kind that is not known; "
            f"known are {', '.join(f'{scheme}://' for scheme in _PROXIES)}"
        )
    return proxy or None


def _goes_straight(host: str, port: int, exempt: str) -> bool:
    """Whether ``exempt`` (NO_PROXY) names a host: ``*``, an address, a range, a domain, or
    one of the last three with a port.

    Own code, as the standard library knows no ranges such as 10.96.0.0/12, by which clusters
    exempt their API server. Source: Go, package golang.org/x/net/http/httpproxy.
    """
    entries = [entry.strip().lower() for entry in exempt.split(",")]
    return any(entry and _exempts(entry, host.lower(), port) for entry in entries)


def _exempts(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    if entry.startswith("[") or entry.count(":") == 1:  # else the colons are an address's own
        entry, _, only = entry.rpartition(":") if not entry.endswith("]") else (entry, "", "")
        if only and only != str(port):
            return False
        entry = entry.strip("[]")
    try:
        return ipaddress.ip_address(entry) == ipaddress.ip_address(host)
    except ValueError:
        domain = entry.removeprefix("*")
        bare = domain.removeprefix(".")
        return host.endswith(f".{bare}") or (host == bare and domain == bare)


def is_loopback(url: str) -> bool:
    """Whether a URL leads to this very machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def lasting_socket(address: Any) -> socket.socket:
    """A socket for an address as getaddrinfo gives it."""
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_KEEPIDLE, _ALIVE_AFTER_SECONDS),
        (socket.TCP_KEEPINTVL, 10),
        (socket.TCP_KEEPCNT, 4),
    ):
        made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made
