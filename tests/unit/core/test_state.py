"""The state that outlives a crash is written and read back; what is not ours counts as none."""

import pytest

from vcjob.api.names import STATE_KEY
from vcjob.api.types import Job
from vcjob.core.indices import NO_INDICES, IndexSet
from vcjob.core.state import State, Target, Timer, encode_state, state_of

FULL = State(
    alive={"w": "0-3"},
    done={"w": "4"},
    keep=True,
    targets=(Target("w", "0,2", 2),),
    timers=(Timer("PodFailed", "RestartJob", 12.5, "w", "1", 3),),
    commands=("u",),
    suspended=True,
    group="g",
    resumed=True,
)


def job_with(text: str) -> Job:
    return Job.of(
        {"metadata": {"name": "lc"}, "status": {"controlledResources": {STATE_KEY: text}}}
    )


@pytest.mark.parametrize("state", [State(), FULL])
def test_a_state_is_read_back(state: State) -> None:
    assert state_of(job_with(encode_state(state))) == state


def test_a_state_says_its_format_and_nothing_that_is_as_ever() -> None:
    assert encode_state(State()) == '{"v":1}'


@pytest.mark.parametrize(
    "text", ["", "{", "{}", '{"v":2}', '{"v":1,"l":{"w":"x"}}', '{"v":1,"t":[{"t":"w"}]}', "[]"]
)
def test_what_cannot_be_read_counts_as_no_state(text: str) -> None:
    assert state_of(job_with(text)) == State()


def test_indices_of_a_task_that_is_not_named_are_none() -> None:
    assert FULL.alive_of("w") == IndexSet.below(4)
    assert FULL.done_of("other") == NO_INDICES
