"""One thing happens to one pod of any Job: the policy answers that its manifest says.

Lives of Jobs look for the same where it comes about (``test_lifecycle_machine.py``); here it always
does, and several policies are for it.
"""

from typing import Any

from answers import NOTHING, answer_to
from drawn_lives import jobs
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule
from lives import World

from vcjob.api.policies import ACTIONS
from vcjob.api.types import Object

EVENTS = ("PodFailed", "PodEvicted", "*")


class Moment(World):
    """One moment of a Job's life."""

    @rule()
    def nothing_happens(self) -> None:
        """A state machine has a rule."""


@st.composite
def policies(draw: Any) -> list[Object]:
    matches = st.one_of(
        st.sampled_from(EVENTS).map(lambda one: {"events": [one]}),
        st.sampled_from([1, 3]).map(lambda code: {"exitCode": code}),
    )
    timeout = st.sampled_from([{}, {}, {"timeout": "30s"}])
    policy = st.builds(
        lambda match, action, late: {**match, "action": action, **late},
        matches, st.sampled_from(ACTIONS), timeout,
    )  # fmt: skip
    return draw(st.lists(policy, max_size=2))


@st.composite
def jobs_with_policies(draw: Any) -> Object:
    job: Object = draw(jobs())
    for part in (job["spec"], *job["spec"]["tasks"]):
        part["policies"] = draw(policies())
    return job


@settings(max_examples=150)
@given(jobs_with_policies(), st.data(), st.sampled_from([0, 1, 3]))
def test_the_first_policy_that_matches_answers(
    job: Object, data: st.DataObject, exit_code: int
) -> None:
    world = Moment()
    try:
        world.begin(job=job, in_the_way=None, runs=True)
        world.promises_hold()
        assume(running := world.pods_in("Running"))
        name = data.draw(st.sampled_from(running))
        happens = "PodFailed" if exit_code else "PodEvicted"
        answer, _ = answer_to(job, name.split("-")[1], happens, exit_code)
        event(f"{happens}: {'an answer' if answer != NOTHING else 'none'}")
        with world.answered(name, happens, exit_code):
            if exit_code:
                world.do(world.simulation.end_pod(name, exit_code))
            else:
                world.do(world.simulation.evict_pod(name))
    finally:
        world.close()
