"""What a request that is not carried out is answered with: the API's ``Status`` object.

Source: Kubernetes API conventions, "Response Status Kind" and "HTTP Status codes".
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from vcjob.api.errors import VcjobError
from vcjob.api.kinds import Kind
from vcjob.api.problems import Problem, format_path, sentence
from vcjob.api.types import Object
from vcjob.controller.cluster import (
    AlreadyExists,
    ClusterError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    StorageFailed,
    Unavailable,
)

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    408: "Timeout",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    417: "ExpectationFailed",  # HTTP's word; the API has none
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
    507: "InsufficientStorage",  # HTTP's word (RFC 4918); the API has none
}


class Cause(msgspec.Struct, frozen=True, omit_defaults=True):
    """One fault of an object: what kind of fault, a sentence, and the field."""

    reason: str
    message: str
    field: str = ""


class Refused(VcjobError):
    """A request that is answered with a Status of ``code``.

    ``reason`` is the API's word for it ("" for the usual one of the code).
    """

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str = "",
        causes: Iterable[Cause] = (),
        details: Object | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason or REASONS.get(code, "")
        self.causes = tuple(causes)
        self.details = details or {}


class Written(msgspec.Struct, frozen=True):
    """What a write answers: the object (or a Status), the code, and warnings for the author."""

    object: Object
    code: int = 200
    warnings: tuple[str, ...] = ()
    is_status: bool = False


def failure(refused: Refused) -> Object:
    """The Status object of a refusal. It always has details: kubectl reads them unasked."""
    details: Object = dict(refused.details)
    if refused.causes:
        details["causes"] = [msgspec.to_builtins(cause) for cause in refused.causes]
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": str(refused),
        "reason": refused.reason,
        "details": details,
        "code": refused.code,
    }


def success(kind: Kind, name: str, uid: str) -> Object:
    """The Status object of an object that is gone."""
    details = {"name": name, "group": kind.group, "kind": kind.plural, "uid": uid}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }


def qualified(kind: Kind) -> str:
    """``jobs.batch.volcano.sh``, or ``pods``."""
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


def not_found(kind: Kind, name: str) -> Refused:
    """There is no object of that name."""
    return Refused(404, f'{qualified(kind)} "{name}" not found', details=_named(kind, name))


def invalid(kind: Kind, name: str, problems: Iterable[Problem]) -> Refused:
    """An object that is wrong, with a cause for each problem."""
    causes = [
        Cause("FieldValueInvalid", sentence(problem), format_path(problem.path))
        for problem in problems
    ]
    told = [f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in causes]
    shown = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    full_kind = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    details = {**_named(kind, name), "kind": kind.kind}
    message = f'{full_kind} "{name}" is invalid: {shown}'
    return Refused(422, message, causes=causes, details=details)


def refusal_of(error: ClusterError, kind: Kind, name: str) -> Refused:
    """What an error of the store means to a client that asked about an object."""
    details = _named(kind, name)
    match error:
        case NotFound():
            return not_found(kind, name)
        case AlreadyExists():
            message = f'{qualified(kind)} "{name}" already exists'
            return Refused(409, message, reason="AlreadyExists", details=details)
        case Conflict():
            message = f'Operation cannot be fulfilled on {qualified(kind)} "{name}": {error}'
            return Refused(409, message, details=details)
        case Invalid():
            return invalid(kind, name, [Problem(str(error))])
        case Forbidden():
            message = f'{qualified(kind)} "{name}" is forbidden: {error}'
            return Refused(403, message, details=details)
        case Gone():
            return Refused(410, str(error))
        case StorageFailed():
            return Refused(507, str(error))
        case Unavailable():
            return Refused(503, str(error))
    return Refused(500, str(error))


def _named(kind: Kind, name: str) -> dict[str, Any]:
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    return {key: value for key, value in details.items() if value}
