"""One thing happens to one pod of any Job: the policy answers that its manifest says.

Lives of Jobs look for the same where it comes about (``test_lifecycle_machine.py``); here it always
does, and several policies are for it.
"""

from typing import Any

from drawn_lives import jobs
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule
from lives import World

from vcjob.api.kinds import POD
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
@given(jobs_with_policies(), st.data(), st.sampled_from(["fails", "is evicted", "is cleaned up"]))
def test_the_first_policy_that_matches_answers(
    job: Object, data: st.DataObject, happens: str
) -> None:
    world = Moment()
    try:
        world.begin(job=job, in_the_way=None, runs=True)
        world.promises_hold()
        assume(running := world.pods_in("Running"))
        name = data.draw(st.sampled_from(running))
        event(happens)
        match happens:
            case "fails":
                exit_code = data.draw(st.sampled_from([1, 3]))
                with world.answered(name, "PodFailed", exit_code):
                    world.do(world.simulation.end_pod(name, exit_code))
            case "is evicted":
                with world.answered(name, "PodEvicted"):
                    world.do(world.simulation.evict_pod(name))
            case _:
                world.do(world.simulation.end_pod(name))
                world.promises_hold()
                assume(name in world.pods_in("Succeeded"))
                with world.answered(name):  # it has done its work: no policy is for that
                    store = world.simulation.store
                    world.do(store.delete(POD, "default", name, grace_period_seconds=0))
    finally:
        world.close()
