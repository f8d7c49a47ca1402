"""What can go wrong on the way to a server and back: aiohttp's errors as ours."""

import contextlib
import ssl
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import aiohttp

from vcjob.controller.cluster import Unavailable
from vcjob.controller.os_errors import words_of
from vcjob.kubernetes.errors import Asked, KubeconfigError, NotTrusted, Unreachable
from vcjob.kubernetes.routes import proxy_of
from vcjob.kubernetes.server import Server
from vcjob.kubernetes.socks import socks_errors


@contextlib.contextmanager
def in_a_sentence(
    server: Server, asked: Asked, ours: Callable[[], str] = lambda: ""
) -> Iterator[None]:
    """Raise what goes wrong on the way to a server as an error that says so in a sentence.

    ``ours`` is what may be wrong with our own certificate: a server that does not take it may
    break the connection without a word.
    """
    url = server.url
    try:
        yield
    except aiohttp.ClientConnectorCertificateError as error:
        raise _not_trusted(url, error.certificate_error) from error
    except aiohttp.ClientSSLError as error:
        raise NotTrusted(f"no TLS with {url}: {_why(error.os_error)}{ours()}") from error
    except socks_errors() as error:
        raise Unreachable(
            f"the proxy {proxy_of(server)} does not reach {url}: {_why(error)}"
        ) from error
    except (aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError) as error:
        raise Unreachable(f"the proxy {proxy_of(server)} cannot be used: {_why(error)}") from error
    except aiohttp.ClientConnectorDNSError as error:
        host = urlsplit(url).hostname
        raise Unreachable(f"the name of the server, {host}, is not known") from error
    except aiohttp.ClientConnectorError as error:
        raise Unreachable(f"nothing answers at {url}: {_why(error.os_error)}") from error
    except aiohttp.ConnectionTimeoutError as error:
        raise Unreachable(f"nothing answers at {url}: no connection in time") from error
    except (aiohttp.InvalidUrlClientError, aiohttp.NonHttpUrlClientError) as error:
        raise KubeconfigError(f"{url} is not the URL of a server") from error
    except TimeoutError as error:
        raise Unavailable(f"{server.shown} did not answer in time when asked to {asked}") from error
    except aiohttp.ClientError as error:
        if isinstance(error.__cause__, ssl.SSLCertVerificationError):  # behind a SOCKS proxy
            raise _not_trusted(url, error.__cause__) from error
        raise Unavailable(
            f"the connection to {server.shown} broke when asked to {asked}: {_why(error)}{ours()}"
        ) from error


def _not_trusted(url: str, error: Exception) -> NotTrusted:
    return NotTrusted(
        f"the certificate of {url} is not to be trusted: {_why(error)}; "
        "compare certificate-authority and server of the kubeconfig file"
    )


def _why(error: BaseException | None) -> str:
    """The reason of an error in a few words."""
    wrapped = error.__cause__ if error is not None else None
    if isinstance(error, (aiohttp.ClientOSError, *socks_errors())) and isinstance(wrapped, OSError):
        error = wrapped
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the answer was cut off"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed it"
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message.rstrip(".")
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).lower().replace("_", " ")
    if isinstance(error, OSError) and error.errno:
        return words_of(error).lower()
    return str(error) or type(error).__name__
