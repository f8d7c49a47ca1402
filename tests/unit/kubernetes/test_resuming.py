"""Output that is followed: each line once, wherever connections break."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.controller.cluster import NotFound, Unavailable
from vcjob.kubernetes.lines import lines
from vcjob.kubernetes.logs import LogOptions
from vcjob.kubernetes.resuming import RunState, followed_lines

FOLLOW = LogOptions(follow=True)
_START = datetime.fromisoformat("2026-01-01T00:00:00+00:00")


def _stamp(milliseconds: int) -> str:
    return f"{_START + timedelta(milliseconds=milliseconds):%Y-%m-%dT%H:%M:%S.%f}000Z"


class Container:
    """What a container printed, (time in milliseconds, text), at a server that breaks connections.

    ``cuts`` are the bytes after which each connection in turn breaks; the last ones hold.
    ``whole_seconds``: the server knows no smaller ones of the time it is asked for.
    ``deleted_after``: after so many connections the pod is not there any more.
    """

    def __init__(
        self,
        printed: Sequence[tuple[int, str]],
        cuts: Sequence[int] = (),
        *,
        whole_seconds: bool = False,
        states: Sequence[RunState] = (RunState.ENDED,),
        deleted_after: int | None = None,
    ) -> None:
        self.asked: list[LogOptions] = []
        self.paused: list[float] = []
        self._printed = printed
        self._cuts = iter(cuts)
        self._whole_seconds = whole_seconds
        self._states = list(states)
        self._deleted_after = deleted_after

    @contextlib.asynccontextmanager
    async def open(self, options: LogOptions) -> AsyncIterator[AsyncIterator[bytes]]:
        self.asked.append(options)
        if self._deleted_after is not None and len(self.asked) > self._deleted_after:
            raise NotFound('pods "a" not found')
        since = options.since_time
        if self._whole_seconds and since:
            since = f"{since[:19]}.000000000Z"
        text = "".join(
            f"{_stamp(at)} {said}\n" for at, said in self._printed if _stamp(at) >= since
        ).encode()
        cut = next(self._cuts, None)
        yield lines(self._pieces(text, cut))

    async def _pieces(self, text: bytes, cut: int | None) -> AsyncIterator[bytes]:
        yield text[:cut]
        if cut is not None:
            raise Unavailable("cut")

    async def state(self) -> RunState:
        return self._states.pop(0) if len(self._states) > 1 else self._states[0]

    async def _pause(self, seconds: float) -> None:
        self.paused.append(seconds)

    def follow(self, options: LogOptions = FOLLOW) -> list[str]:
        async def run() -> list[str]:
            followed = followed_lines(self.open, options, self.state, self._pause)
            return [line.decode() async for line in followed]

        return asyncio.run(run())


@given(
    printed=st.lists(st.tuples(st.integers(0, 5000), st.sampled_from(["a", "b", ""])), max_size=12),
    cuts=st.lists(st.integers(0, 300), max_size=8),
    whole_seconds=st.booleans(),
)
def test_every_line_comes_once_wherever_connections_break(
    printed: list[tuple[int, str]], cuts: list[int], whole_seconds: bool
) -> None:
    container = Container(sorted(printed, key=lambda p: p[0]), cuts, whole_seconds=whole_seconds)
    assert container.follow() == [said for _, said in sorted(printed, key=lambda p: p[0])]


def test_words_of_the_server_itself_have_no_time_and_are_shown() -> None:
    class Broken(Container):
        async def _pieces(self, text: bytes, cut: int | None) -> AsyncIterator[bytes]:
            yield text + b"unable to retrieve container logs for x\n"

    assert Broken([(1, "a")]).follow() == ["a", "unable to retrieve container logs for x"]


def test_times_are_shown_if_they_are_wanted() -> None:
    container = Container([(1, "a"), (1, "b")], [40])
    shown = container.follow(LogOptions(follow=True, timestamps=True))
    assert shown == [f"{_stamp(1)} a", f"{_stamp(1)} b"]


def test_the_rest_of_a_run_that_was_restarted_meanwhile_comes_from_before_the_restart() -> None:
    container = Container([(1, "a"), (2, "b")], [40], states=[RunState.RESTARTED])
    assert container.follow() == ["a", "b"]
    assert [(asked.follow, asked.previous) for asked in container.asked] == [
        (True, False),
        (False, True),
    ]


def test_output_that_is_gone_is_told() -> None:
    container = Container([(1, "a"), (2, "b")], [40], states=[RunState.GONE])
    with pytest.raises(Unavailable, match="cut"):
        container.follow()


def test_a_stream_that_ends_before_the_run_is_gone_on_with() -> None:
    container = Container([(1, "a")], states=[RunState.RUNS, RunState.RUNS, RunState.ENDED])
    assert container.follow() == ["a"]
    assert len(container.asked) == 3


def test_a_pod_that_is_deleted_after_the_end_of_its_output_is_no_error() -> None:
    container = Container([(1, "a")], states=[RunState.RUNS], deleted_after=1)
    assert container.follow() == ["a"]


@pytest.mark.parametrize(("cuts", "deleted_after"), [([], 0), ([40], 1)])
def test_a_pod_that_is_deleted_while_output_is_missing_is_told(
    cuts: list[int], deleted_after: int
) -> None:
    printed = [(1, "a"), (2, "b")]
    container = Container(printed, cuts, states=[RunState.RUNS], deleted_after=deleted_after)
    with pytest.raises(NotFound):
        container.follow()


def test_a_server_that_does_not_come_back_is_given_up_after_half_a_minute() -> None:
    container = Container([(1, "a")], [0] * 99, states=[RunState.RUNS])
    with pytest.raises(Unavailable, match="cut"):
        container.follow()
    assert 20 < sum(container.paused) < 60


def test_without_a_line_what_came_since_the_beginning_is_asked_for() -> None:
    container = Container([], [0], states=[RunState.RUNS, RunState.ENDED])
    assert container.follow(LogOptions(follow=True, tail=0)) == []
    assert [(asked.tail, asked.since_seconds) for asked in container.asked] == [
        (0, None),
        (None, 1),
    ]
