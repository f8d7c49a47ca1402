"""Whatever happens to replicas, lines and clocks: never two work at once, in the end one does."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replicas import Replicas

EXAMPLES, LONG_EXAMPLES = 150, 20_000
REPLICAS = 3

pauses = st.sampled_from([0.0, 0.1, 1.0, 2.0, 3.7, 9.0, 11.0, 14.9, 16.0, 40.0])
numbers = st.integers(0, REPLICAS - 1)
happenings = st.one_of(
    st.tuples(st.just("cut"), numbers, st.booleans()),
    st.tuples(st.just("there"), numbers, st.sampled_from([0.0, 0.5, 4.0, 9.0])),
    st.tuples(st.just("back"), numbers, st.sampled_from([0.0, 0.5, 4.0, 30.0])),
    st.tuples(st.just("crash"), numbers, st.none()),
    st.tuples(st.just("stop"), numbers, st.none()),
    st.tuples(st.just("linger"), numbers, st.sampled_from([0.0, 1.0, 4.0])),
)
clocks = st.tuples(st.sampled_from([0.0, -7200.0, 40.0, 1e6]), st.sampled_from([1.0, 0.99, 1.01]))


async def _live(world: Replicas, skews: list[tuple[float, float]], story: list[Any]) -> None:
    places = [world.add(off=off, rate=rate) for off, rate in skews]
    for happening, pause in story:
        what, number, value = happening
        if what in ("crash", "stop"):
            await getattr(places[number], what)()
            off, rate = skews[number]
            places[number] = world.add(off=off, rate=rate)
        elif what == "linger":
            places[number].lingers = value
        else:
            setattr(places[number].line, what, value)
        await world.advance(pause)
        assert world.wrong == []
    for one in places:
        one.line.cut, one.line.there, one.line.back, one.lingers = False, 0.0, 0.0, 0.0
    await world.advance(60)
    assert world.wrong == []
    assert len(world.at_work) == 1, "with all well one works"


@pytest.mark.timeout(3600)
def test_never_two_work_at_once_and_in_the_end_one_does(is_long: bool) -> None:
    @settings(max_examples=LONG_EXAMPLES if is_long else EXAMPLES, deadline=None)
    @given(
        skews=st.lists(clocks, min_size=REPLICAS, max_size=REPLICAS),
        story=st.lists(st.tuples(happenings, pauses), max_size=14),
    )
    def holds(skews: list[tuple[float, float]], story: list[Any]) -> None:
        async def tell() -> None:
            world = Replicas()
            try:
                await _live(world, skews, story)
            finally:
                await world.end()

        asyncio.run(tell())

    holds()
