"""Credentials that change: tokens and certificates in files, and what exec plug-ins hand out.

Source: Kubernetes documentation, "Authenticating" (client-go credential plugins); files are read
again at least once a minute, as client-go does with tokens.
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

_FILE_SECONDS = 60.0
_PLUGIN_SECONDS = 60.0
"""How long a plug-in may take. One that asks the user for something has no limit."""
_LONGEST_OUTPUT = 300


class Credential(msgspec.Struct, frozen=True):
    """What a request is sent with: a bearer token, or a client certificate and its key (PEM).

    ``authority`` (PEM) may vouch for the server; empty for those whom this machine trusts.
    """

    token: str = ""
    certificate: str = ""
    key: str = ""
    authority: str = ""

    def __repr__(self) -> str:
        return "Credential(…)"


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


_NO_ANSWER = _Status()


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
        self._read_until = 0.0
        self._answer: _Status | None = None
        self._answer_until = 0.0
        self._lock = asyncio.Lock()

    async def current(self) -> Credential:
        """The credential to use now; raises KubeconfigError."""
        if not self._changes():
            return _credential(self._server)
        async with self._lock:
            if self._server.files.any() and self._clock() >= self._read_until:
                self._server = _read_again(self._server)
                self._read_until = self._clock() + _FILE_SECONDS
            if self._server.plugin is None or self._server.token:
                return _credential(self._server)
            if self._answer is None or self._clock() >= self._answer_until:
                self._answer, self._answer_until = await self._ask_plugin()
            return _credential(self._server, self._answer)

    def refuse(self, credential: Credential) -> bool:
        """``credential`` was of no use: forget it. True if there may be another."""
        if credential == _credential(self._server, self._answer or _NO_ANSWER):
            self._read_until, self._answer = 0.0, None
        return self._changes()

    def _changes(self) -> bool:
        return self._server.files.any() or self._server.plugin is not None

    async def _ask_plugin(self) -> tuple[_Status, float]:
        """What the plug-in hands out, and until when that is good."""
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
        return status, expires.timestamp() if expires else float("inf")


def _credential(server: Server, answer: _Status = _NO_ANSWER) -> Credential:
    """What a server's context says, and what a plug-in answered before it."""
    return Credential(
        answer.token or server.token,
        answer.client_certificate_data or server.certificate,
        answer.client_key_data or server.key,
        server.authority,
    )


def _read_again(server: Server) -> Server:
    """The server with what its files hold now."""
    files = server.files
    token = server.token
    if files.token and not (token := _read(files.token, "token file").strip()):
        raise KubeconfigError(f"the token file {files.token} is empty")
    return msgspec.structs.replace(
        server,
        token=token,
        authority=_read(files.authority, "certificate authority", server.authority),
        certificate=_read(files.certificate, "client certificate", server.certificate),
        key=_read(files.key, "client key", server.key),
    )


def _read(path: str, what: str, default: str = "") -> str:
    if not path:
        return default
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise KubeconfigError(f"the {what} {path} cannot be read: {reason}") from error


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
