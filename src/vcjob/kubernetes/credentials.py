"""Credentials that change: tokens in files, and what exec plug-ins hand out.

Source: Kubernetes documentation, "Authenticating" (client-go credential plugins); a token file is
read again at least once a minute, as client-go does.
"""

import asyncio
import base64
import os
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import msgspec

from vcjob.kubernetes.errors import KubeconfigError
from vcjob.kubernetes.server import ExecPlugin, Server

_TOKEN_FILE_SECONDS = 60.0
_PLUGIN_SECONDS = 60.0
"""How long a plug-in may take. One that asks the user for something has no limit."""
_LONGEST_OUTPUT = 300


class Credential(msgspec.Struct, frozen=True):
    """What a request is sent with: a bearer token, or a client certificate and its key (PEM)."""

    token: str = ""
    certificate: str = ""
    key: str = ""

    def __repr__(self) -> str:
        return "Credential(…)"


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    status: _Status
    api_version: str = ""


class Credentials:
    """The current credential for a server.

    Args:
        server: whose credentials.
        clock: the time in seconds since 1970.
    """

    def __init__(self, server: Server, clock: Callable[[], float] = time.time) -> None:
        self._server = server
        self._clock = clock
        self._kept: Credential | None = None
        self._good_until = 0.0
        self._lock = asyncio.Lock()

    async def current(self) -> Credential:
        """The credential to use now; raises KubeconfigError."""
        server = self._server
        if not server.token_file and server.plugin is None:
            return Credential(server.token, server.certificate, server.key)
        async with self._lock:
            if self._kept is None or self._clock() >= self._good_until:
                if server.token_file:
                    self._kept = self._read_file()
                    self._good_until = self._clock() + _TOKEN_FILE_SECONDS
                else:
                    self._kept, self._good_until = await self._ask_plugin()
            return self._kept

    def refuse(self, credential: Credential) -> bool:
        """The server did not take ``credential``: forget it. True if there may be another."""
        if self._kept == credential:
            self._kept = None
        return bool(self._server.token_file or self._server.plugin)

    def _read_file(self) -> Credential:
        path = self._server.token_file
        try:
            token = Path(path).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise KubeconfigError(f"the token file {path} cannot be read: {reason}") from error
        if not token:
            raise KubeconfigError(f"the token file {path} is empty")
        return Credential(token, self._server.certificate, self._server.key)

    async def _ask_plugin(self) -> tuple[Credential, float]:
        plugin = self._server.plugin
        assert plugin is not None
        answer = _parse(plugin, await _run(plugin, self._server))
        status = answer.status
        if answer.api_version != plugin.api_version:
            raise _fault(
                plugin,
                f"answered with version {answer.api_version!r}, not {plugin.api_version!r}",
            )
        if not status.token and not (status.client_certificate_data and status.client_key_data):
            raise _fault(plugin, "answered with neither a token nor a certificate with its key")
        expires = status.expiration_timestamp
        credential = Credential(
            status.token,
            status.client_certificate_data or self._server.certificate,
            status.client_key_data or self._server.key,
        )
        return credential, expires.timestamp() if expires else float("inf")


async def _run(plugin: ExecPlugin, server: Server) -> bytes:
    command = plugin.command
    if "/" in command:  # a path is relative to the kubeconfig file
        command = os.path.join(plugin.directory, command)
    terminal = sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not terminal:
        raise _fault(plugin, "wants to ask somebody, and standard input is no terminal")
    interactive = terminal and plugin.interactive_mode != "Never"
    spec: dict[str, object] = {"interactive": interactive}
    if plugin.provide_cluster_info:
        spec["cluster"] = _cluster_info(server)
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    environment = {
        **os.environ,
        **dict(plugin.env),
        "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode(),
    }
    try:
        process = await asyncio.create_subprocess_exec(
            command,
            *plugin.args,
            env=environment,
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if interactive else asyncio.subprocess.PIPE,
        )
    except OSError as error:
        hint = f"; {' '.join(plugin.install_hint.split())}" if plugin.install_hint else ""
        raise KubeconfigError(
            f"the credential plug-in {plugin.command} cannot be run: {error.strerror}{hint}"
        ) from error
    try:
        async with asyncio.timeout(None if interactive else _PLUGIN_SECONDS):
            output, errors = await process.communicate()
    except TimeoutError as error:
        raise _fault(plugin, f"did not answer within {_PLUGIN_SECONDS:.0f} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        said = " ".join((errors or b"").decode(errors="replace").split())[-_LONGEST_OUTPUT:]
        raise _fault(plugin, f"ended with exit code {process.returncode}{f': {said}' * bool(said)}")
    return output


def _parse(plugin: ExecPlugin, output: bytes) -> _ExecCredential:
    try:
        return msgspec.json.decode(output, type=_ExecCredential)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _fault(plugin, "printed no ExecCredential object") from error


def _cluster_info(server: Server) -> dict[str, object]:
    info: dict[str, object] = {"server": server.url}
    if server.authority:
        info["certificate-authority-data"] = base64.b64encode(server.authority.encode()).decode()
    if server.tls_name:
        info["tls-server-name"] = server.tls_name
    if server.unverified:
        info["insecure-skip-tls-verify"] = True
    if server.proxy:
        info["proxy-url"] = server.proxy
    return info


def _fault(plugin: ExecPlugin, what: str) -> KubeconfigError:
    return KubeconfigError(f"the credential plug-in {plugin.command} {what}")
