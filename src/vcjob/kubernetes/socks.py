"""SOCKS proxies, by aiohttp-socks (the extra ``socks``), which is imported only for one."""

import sys
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from vcjob.kubernetes.errors import KubeconfigError

SCHEMES = ("socks5", "socks5h")
"""Both have the proxy look up the server's name, as in client-go."""


def is_socks(proxy: str | None) -> bool:
    """Whether the URL of a proxy is that of a SOCKS one."""
    return urlsplit(proxy or "").scheme in SCHEMES


def socks_connector(proxy: str, tls_name: str, **settings: Any) -> aiohttp.TCPConnector:
    """A connector through a SOCKS proxy; ``settings`` are those of aiohttp.TCPConnector.

    Raises KubeconfigError where the library is missing, or cannot do what is asked.
    """
    try:
        from aiohttp_socks import ProxyConnector
    except ImportError as error:
        raise KubeconfigError(
            f"the proxy {proxy} is a SOCKS proxy, for which a package is missing: "
            "pip install 'vcjob[socks]'"
        ) from error
    if tls_name:
        raise KubeconfigError(f"tls-server-name cannot be used with the SOCKS proxy {proxy}")
    return ProxyConnector.from_url(f"socks5://{proxy.partition('://')[2]}", rdns=True, **settings)


def socks_errors() -> tuple[type[Exception], ...]:
    """What a SOCKS proxy may raise beside aiohttp's own errors; nothing where none is used."""
    library = sys.modules.get("aiohttp_socks")
    if library is None:
        return ()
    names = ("ProxyError", "ProxyConnectionError", "ProxyTimeoutError")
    return tuple(getattr(library, name) for name in names)
