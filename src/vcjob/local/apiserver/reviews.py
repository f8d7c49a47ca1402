"""Questions about who one is and what one may do: answered, never stored.

Whoever has the engine's token may do everything, so that the answer is always yes. Source:
Kubernetes API reference, "Authentication Resources" and "Authorization Resources".
"""

from collections.abc import Mapping

from vcjob.api.kinds import Kind
from vcjob.api.types import Object

SUBJECT_REVIEW = Kind(
    "authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", False
)
ACCESS_REVIEW = Kind(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False
)
RULES_REVIEW = Kind(
    "authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", False
)

_EVERYTHING = ["*"]
_ANSWERS: Mapping[Kind, Object] = {
    SUBJECT_REVIEW: {
        "userInfo": {"username": "vcjob", "groups": ["system:masters", "system:authenticated"]}
    },
    ACCESS_REVIEW: {
        "allowed": True,
        "reason": "whoever has the token of this engine may do everything",
    },
    RULES_REVIEW: {
        "resourceRules": [
            {"verbs": _EVERYTHING, "apiGroups": _EVERYTHING, "resources": _EVERYTHING}
        ],
        "nonResourceRules": [{"verbs": _EVERYTHING, "nonResourceURLs": _EVERYTHING}],
        "incomplete": False,
    },
}


def answer(kind: Kind, question: Object) -> Object:
    """A review with its answer."""
    named = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {}}
    return {**question, **named, "status": _ANSWERS[kind]}
