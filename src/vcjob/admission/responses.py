"""What was decided about a request, in the words of AdmissionReview v1.

Source: Kubernetes documentation, "Dynamic Admission Control", section "Response"; clients show the
causes of a status with reason Invalid one by one.
"""

import base64
from collections.abc import Iterator, Sequence

import msgspec

from vcjob.api.defaults import Operation
from vcjob.api.kinds import Kind
from vcjob.api.problems import Problem, errors, format_path, printable, sentence
from vcjob.api.types import Object

_REASONS = {400: "BadRequest", 403: "Forbidden", 422: "Invalid"}
_LONGEST_WARNING = 255
"""API servers cut warnings of more than 256 characters where there are many."""
_MOST_WARNINGS = 12
_MOST_CAUSES = 50
_LONGEST_SENTENCE = 1000


class Verdict(msgspec.Struct, frozen=True):
    """What is wrong with what was asked about (an error refuses it), or what is to be changed.

    ``code`` is HTTP's word for a refusal.
    """

    problems: Sequence[Problem] = ()
    patch: Sequence[Operation] = ()
    code: int = 422


def respond(verdict: Verdict, uid: str, kind: Kind, name: str) -> Object:
    """The ``response`` of a review; ``uid`` is the request's, kind and name are the object's."""
    refused = errors(list(verdict.problems))
    response: Object = {"uid": uid, "allowed": not refused}
    if refused:
        response["status"] = _status(refused, verdict.code, kind, name)
    elif verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(verdict.patch)).decode()
    if told := [*_warnings([problem for problem in verdict.problems if problem.warning])]:
        response["warnings"] = told
    return response


def _status(refused: list[Problem], code: int, kind: Kind, name: str) -> Object:
    shown = refused[:_MOST_CAUSES]
    sentences = [_told(problem) for problem in shown]
    causes = [
        {
            "reason": "FieldValueInvalid",
            "message": _short(printable(sentence(problem)), _LONGEST_SENTENCE),
            "field": format_path(problem.path),
        }
        for problem in shown
    ]
    return {
        "status": "Failure",
        "code": code,
        "reason": _REASONS[code],
        "message": sentences[0] if len(refused) == 1 else _numbered(sentences, len(refused)),
        "details": {"group": kind.group, "kind": kind.kind, "name": name, "causes": causes},
    }


def _numbered(sentences: list[str], count: int) -> str:
    listed = "; ".join(f"({number}) {one}" for number, one in enumerate(sentences, 1))
    more = count - len(sentences)
    return f"{count} problems: {listed}{f'; and {more} more' if more else ''}"


def _warnings(problems: list[Problem]) -> Iterator[str]:
    shown = problems if len(problems) <= _MOST_WARNINGS else problems[: _MOST_WARNINGS - 1]
    for problem in shown:
        yield _short(_told(problem), _LONGEST_WARNING)
    if len(problems) > len(shown):
        yield f"and {len(problems) - len(shown)} warnings more; vcjob validate shows all"


def _told(problem: Problem) -> str:
    said = printable(sentence(problem))
    path = printable(format_path(problem.path))
    return _short(f"{path}: {said}" if path else said, _LONGEST_SENTENCE)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
