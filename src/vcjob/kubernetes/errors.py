"""What can go wrong between us and an API server, each as one sentence that names the cure."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from vcjob.api.errors import VcjobError
from vcjob.api.kinds import Kind
from vcjob.controller.cluster import (
    AlreadyExists,
    ClusterError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Unavailable,
)

_LONGEST_TEXT = 500
_DENIED = re.compile(r"cannot (\w+) resource")


class KubeconfigError(VcjobError):
    """A kubeconfig file, or a credential that it names, cannot be used."""


class Unauthorized(ClusterError):
    """The server does not know us: credentials are missing, wrong or expired."""


class NotServed(ClusterError):
    """The server has no such kind of object: its CustomResourceDefinition is not installed."""


class Unreachable(Unavailable):
    """No connection to the server could be made, so that nothing was carried out."""


class NotTrusted(Unreachable):
    """The server's certificate, or TLS with it at all, is not as it should be."""


class NoCredentials(Unavailable):
    """A credential cannot be had now (a token file, an exec plug-in, a certificate)."""


class Asked(msgspec.Struct, frozen=True):
    """What a request was about, for messages: verb (as RBAC has it), kind, place, subresource."""

    verb: str
    kind: Kind | None = None
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        """``get pods/log "a" in namespace "b"``."""
        if self.kind is None:
            return f"{self.verb} {self.name}"
        group = f".{self.kind.group}" if self.kind.group else ""
        subresource = f"/{self.subresource}" if self.subresource else ""
        name = f' "{self.name}"' if self.name else ""
        place = f' in namespace "{self.namespace}"' if self.namespace else ""
        return f"{self.verb} {self.kind.plural}{group}{subresource}{name}{place}"


def error_of(
    status: int, headers: Mapping[str, str], body: bytes, asked: Asked, server: str
) -> ClusterError:
    """The error that a response with a status of 400 or more means.

    ``server`` names the server in messages. Source: Kubernetes API conventions, "Response Status
    Kind" and "HTTP Status codes".
    """
    answer = _status_object(body)
    message = str(answer.get("message") or "").strip() or _plain(body)
    reason = str(answer.get("reason") or "")
    match status:
        case 401:
            return Unauthorized(
                f"{server} does not know us (401): the token or certificate is missing, wrong or "
                f"expired{_detail(message, 'Unauthorized')}"
            )
        case 403:
            if _DENIED.search(message):
                return Forbidden(f"{server} does not let us {asked}{_detail(message)}")
            return Forbidden(message or f"{server} refused to {asked} (403)")
        case 404:
            return _not_found(answer, message, asked, server)
        case 409 if reason == "AlreadyExists":
            return AlreadyExists(message)
        case 409:
            return Conflict(message or f"{server} could not {asked}: something else changed it")
        case 422 if _is_about_uid(answer):
            return Conflict(message)
        case 410:
            return Gone(message or "the resource version is too old")
        case 429:
            return Unavailable(
                f"{server} has too much to do (429); it was asked to {asked}",
                _retry_after(headers, answer),
            )
        case 504 if reason == "Timeout":
            return Unavailable(message, _retry_after(headers, answer))
        case _ if status >= 500:
            return Unavailable(
                f"{server} failed to {asked} ({status}){_detail(message)}",
                _retry_after(headers, answer),
            )
        case _ if status >= 400:
            return Invalid(message or f"{server} refused to {asked} ({status})")
        case _:
            return ClusterError(f"{server} answered {status} when asked to {asked}")


def event_error(answer: Mapping[str, Any], asked: Asked, server: str) -> ClusterError:
    """The error that an ERROR event of a watch means."""
    code = answer.get("code")
    return error_of(
        code if isinstance(code, int) else 500, {}, msgspec.json.encode(answer), asked, server
    )


def _is_about_uid(answer: Mapping[str, Any]) -> bool:
    """Whether a patch was refused because the object is another one of the same name."""
    details = answer.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return any(
        isinstance(cause, dict) and cause.get("field") == "metadata.uid" for cause in causes or ()
    )


def _not_found(answer: Mapping[str, Any], message: str, asked: Asked, server: str) -> ClusterError:
    details = answer.get("details")
    names_object = isinstance(details, dict) and details.get("name")
    if asked.kind is not None and not names_object and not asked.subresource:
        group = f".{asked.kind.group}" if asked.kind.group else ""
        return NotServed(
            f"{server} does not serve {asked.kind.plural}{group} "
            f"(version {asked.kind.version}); is the CustomResourceDefinition installed?"
        )
    return NotFound(message or f"{server} has nothing to {asked}")


def _status_object(body: bytes) -> dict[str, Any]:
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _plain(body: bytes) -> str:
    """The first words of an answer that is no Status object (from a proxy, say)."""
    text = " ".join(body[: _LONGEST_TEXT * 4].decode(errors="replace").split())
    return "" if text.startswith(("<", "{")) else text[:_LONGEST_TEXT]


def _detail(message: str, *empty: str) -> str:
    return f": {message[:_LONGEST_TEXT]}" if message and message not in empty else ""


def _retry_after(headers: Mapping[str, str], answer: Mapping[str, Any]) -> float | None:
    details = answer.get("details")
    told = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    for value in (headers.get("Retry-After"), told):
        if value is None:
            continue
        try:
            seconds = float(value)
        except (TypeError, ValueError):
            continue
        if seconds > 0:
            return seconds
    return None
