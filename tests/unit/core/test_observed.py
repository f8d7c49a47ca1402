"""The kept summary is what a recount makes, whatever came in whatever order."""

from hypothesis import given
from hypothesis import strategies as st

from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.indices import IndexSet
from vcjob.core.observed import Observed, recount

facts = st.builds(
    PodFacts,
    name=st.just(""),
    uid=st.sampled_from(["u", "v"]),
    task=st.sampled_from(["ps", "worker"]),
    index=st.integers(0, 3),
    version=st.integers(0, 2),
    retry=st.integers(0, 2),
    phase=st.sampled_from(PodPhase),
    ended=st.sampled_from([None, PodPhase.SUCCEEDED, PodPhase.FAILED]),
    ready=st.booleans(),
    restarts=st.integers(0, 1),
    failing=st.sampled_from(["", "ImagePullBackOff"]),
)
changes = st.lists(st.tuples(st.sampled_from(["set", "set", "remove"]), facts), max_size=30)


@given(changes)
def test_the_summary_equals_a_recount(steps: list[tuple[str, PodFacts]]) -> None:
    observed = Observed()
    for what, pod in steps:
        getattr(observed, what)(pod)
    again = recount(observed.pods.values())
    assert again.tasks == observed.tasks
    assert again.pods == observed.pods
    assert sum(observed.counts().values()) == len(observed.pods)


def pod(uid: str = "u", **values: object) -> PodFacts:
    given = {"phase": PodPhase.RUNNING, "task": "w", "index": 1, "version": 0, "retry": 0, **values}
    return PodFacts(name="lc-w-1", uid=uid, **given)  # type: ignore[arg-type]


def test_a_pod_that_ended_before_it_was_deleted_has_ended_by_itself() -> None:
    observed = Observed()
    observed.set(pod(phase=PodPhase.SUCCEEDED, ended=PodPhase.SUCCEEDED))
    observed.set(pod(phase=PodPhase.TERMINATING))
    assert observed.task("w").ended == {PodPhase.SUCCEEDED: IndexSet.of(1)}


def test_a_pod_in_the_place_of_another_means_that_the_other_is_gone() -> None:
    observed = Observed()
    observed.set(pod("first"))
    observed.set(pod("second"))
    assert observed.gone["w", 1].uid == "first"
    assert observed.pods["w", 1].uid == "second"


def test_late_news_of_the_end_of_an_earlier_pod_take_nothing_away() -> None:
    observed = Observed()
    observed.set(pod("second"))
    observed.remove(pod("first"))
    assert observed.task("w").slots == IndexSet.of(1)


def test_the_same_news_again_ask_for_no_attention() -> None:
    observed = Observed()
    failed = pod(phase=PodPhase.FAILED, ended=PodPhase.FAILED, exit_codes=(1,))
    observed.set(failed)
    assert observed.attention == {("w", 1)}
    observed.attention.clear()
    observed.set(failed)
    assert not observed.attention
