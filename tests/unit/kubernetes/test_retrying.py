"""What is asked again, when, and when somebody has to look first."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.api.types import Object
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
from vcjob.kubernetes.errors import NoCredentials, NotServed, NotTrusted, Unauthorized, Unreachable
from vcjob.kubernetes.retrying import ONCE_MORE, Outcome, Patience, Retrier, outcome_of

LOST = Unavailable("the connection broke")
BUSY = Unavailable("too much to do (429)", 7.0)
AWAY = Unreachable("nothing answers")
DONE: Object = {"done": True}
MADE_BEFORE: Object = {"made": "before"}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (LOST, Outcome.UNCLEAR),
        (BUSY, Outcome.UNCLEAR),
        (AWAY, Outcome.NOTHING_DONE),
        (Conflict(""), Outcome.NOTHING_DONE),
        *((kind(""), Outcome.REFUSED) for kind in (
            AlreadyExists, Forbidden, Gone, Invalid, NotFound, NotServed, Unauthorized,
            NoCredentials, NotTrusted,
        )),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_an_error_tells(error: ClusterError, outcome: Outcome) -> None:
    assert outcome_of(error, conflicts_pass=True) is outcome


def test_a_conflict_about_a_version_does_not_pass() -> None:
    assert outcome_of(Conflict(""), conflicts_pass=False) is Outcome.REFUSED


class Jitter(random.Random):
    """Draws always the same."""

    def __init__(self, drawn: float) -> None:
        super().__init__()
        self.drawn = drawn

    def random(self) -> float:
        return self.drawn


@given(st.integers(1, 2000), st.floats(0, 0.999))
def test_waits_double_up_to_a_limit_and_are_spread(failed: int, drawn: float) -> None:
    patience = Patience(tries=5000, first=0.5, longest=20.0)
    wait = patience.wait(LOST, failed, Jitter(drawn))
    whole = min(0.5 * 2 ** min(failed - 1, 10), 20.0)
    assert wait is not None
    assert whole / 2 <= wait <= whole
    if drawn > 0.001:
        assert wait != patience.wait(LOST, failed, Jitter(0.0))


def test_the_server_says_how_long_to_wait_within_reason() -> None:
    patience = Patience(longest_asked=30.0)
    assert patience.wait(BUSY, 1, Jitter(0.0)) == 7.0
    assert 7.0 < (patience.wait(BUSY, 1, Jitter(0.9)) or 0) < 9.0
    assert patience.wait(Unavailable("", 31.0), 1, Jitter(0.0)) is None
    assert patience.pause(Unavailable("", 31.0), 1, Jitter(0.0)) == 30.0
    assert patience.wait(LOST, patience.tries, Jitter(0.0)) is None


class Asked:
    """A request that is answered in order, by objects or errors."""

    def __init__(self, *answers: Object | ClusterError) -> None:
        self.answers = list(answers)
        self.waits: list[float] = []
        self.looked: list[ClusterError] = []

    async def request(self) -> Object:
        answer = self.answers.pop(0)
        if isinstance(answer, ClusterError):
            raise answer
        return answer

    async def settle(self, error: ClusterError) -> Object | None:
        self.looked.append(error)
        return MADE_BEFORE if isinstance(error, AlreadyExists) else None

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def make(self, **options: Any) -> Object:
        retrier = Retrier(Jitter(0.0), self.sleep)
        return asyncio.run(retrier.make(self.request, self.settle, **options))


@pytest.mark.parametrize(
    ("answers", "waits"),
    [
        ([], []),
        ([LOST], [0.2]),
        ([LOST, AWAY, LOST], [0.2, 0.4, 0.8]),
        ([BUSY], [7.0]),
    ],
)
def test_what_may_succeed_is_asked_again(
    answers: Sequence[ClusterError], waits: Sequence[float]
) -> None:
    asked = Asked(*answers, DONE)
    assert asked.make() == DONE
    assert asked.waits == pytest.approx(waits)


@pytest.mark.parametrize(
    ("answers", "options"),
    [
        ([Invalid("no")], {}),
        ([LOST] * 4, {}),
        ([LOST] * 2, {"patience": ONCE_MORE}),
        ([LOST], {"repeat_unclear": False}),
        ([AWAY, LOST], {"repeat_unclear": False}),
        ([Conflict("version")], {}),
        ([Conflict("quota")] * 4, {"conflicts_pass": True}),
        ([Unavailable("", 3600.0)], {}),
    ],
)
def test_patience_ends_and_the_last_error_is_told(
    answers: list[ClusterError], options: dict[str, Any]
) -> None:
    asked = Asked(*answers)
    with pytest.raises(type(answers[-1])) as raised:
        asked.make(**options)
    assert raised.value is answers[-1]
    assert not asked.answers


def test_only_after_an_unclear_outcome_an_error_may_be_ones_own_doing() -> None:
    exists = AlreadyExists("a")
    clear = Asked(AWAY, exists)
    with pytest.raises(AlreadyExists):
        clear.make()
    assert not clear.looked
    unclear = Asked(LOST, AWAY, exists)
    assert unclear.make() == MADE_BEFORE
    assert unclear.looked == [AWAY, exists]
    another = Asked(LOST, NotFound("b"))
    with pytest.raises(NotFound):
        another.make()
