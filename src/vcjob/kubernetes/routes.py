"""The way to a server: proxies, and sockets that notice when the other side is gone."""

import ipaddress
import socket
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from vcjob.kubernetes.errors import KubeconfigError
from vcjob.kubernetes.server import Server

_ALIVE_AFTER_SECONDS = 30
"""A peer that is gone without a word is noticed after this, and four questions 10 s apart."""


def proxy_of(server: Server) -> str | None:
    """The proxy of the kubeconfig file, else the environment's, as Go's clients choose it."""
    parts = urlsplit(server.url)
    proxy = server.proxy
    if not proxy and not is_loopback(server.url):
        host = parts.hostname or ""
        if not proxy_bypass(host):
            proxy = getproxies().get(parts.scheme, "")
    if proxy and urlsplit(proxy).scheme not in ("http", "https"):
        raise KubeconfigError(
            f"the proxy {proxy} of {server.name} is of a kind that is not known; "
            "http:// and https:// are"
        )
    return proxy or None


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
