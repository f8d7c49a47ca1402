"""What errors of the store are to clients."""

import pytest

from vcjob.api.kinds import JOB
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
from vcjob.local.apiserver.status import failure, refusal_of


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (NotFound("said"), 404, "NotFound"),
        (AlreadyExists("said"), 409, "AlreadyExists"),
        (Conflict("said"), 409, "Conflict"),
        (Invalid("said"), 422, "Invalid"),
        (Forbidden("said"), 403, "Forbidden"),
        (Gone("said"), 410, "Expired"),
        (StorageFailed("said"), 507, "InsufficientStorage"),
        (Unavailable("said"), 503, "ServiceUnavailable"),
        (ClusterError("said"), 500, "InternalError"),
    ],
)
def test_each_error_has_its_code_and_reason(error: ClusterError, code: int, reason: str) -> None:
    status = failure(refusal_of(error, JOB, "lc"))
    assert (status["code"], status["reason"], status["status"]) == (code, reason, "Failure")
    assert "said" in status["message"] or "lc" in status["message"]
