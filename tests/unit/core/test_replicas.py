"""Which pods live, which go, which come: each rule at one small Job."""

from typing import Any

import pytest

from vcjob.api.types import Job
from vcjob.core.draft import Draft, begin
from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.indices import IndexSet
from vcjob.core.observed import Observed
from vcjob.core.replicas import BATCH, note_done, places_to_fill, pods_to_remove, take_stock

NOBODY: frozenset[str] = frozenset()
R, S, F, T = PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED, PodPhase.TERMINATING


def pod(index: int, phase: PodPhase, version: int = 0, task: str = "w") -> PodFacts:
    name = f"j-{task}-{index}"
    ended = phase if phase.is_finished else None
    return PodFacts(name, name, task, index, version, 0, phase, ended=ended)


def draft(*pods: PodFacts, replicas: int = 3, phase: str = "Running", version: int = 0,
          state: str = "", gone: tuple[PodFacts, ...] = ()) -> Draft:  # fmt: skip
    observed = Observed()
    for facts in pods:
        observed.set(facts)
    for facts in gone:
        observed.gone[facts.task, facts.index] = facts
    resources = {"vcjob.dev/state": state} if state else {}
    whole: Any = {
        "metadata": {"name": "j"},
        "spec": {"tasks": [{"name": "w", "replicas": replicas}]},
        "status": {
            "state": {"phase": phase}, "version": version, "controlledResources": resources,
        },
    }  # fmt: skip
    return begin(Job.of(whole), observed, None)


@pytest.mark.parametrize(
    ("one", "alive", "done"),
    [
        (draft(pod(0, R), pod(1, S), pod(2, F)), "0", "1"),
        (draft(pod(0, R), pod(1, T)), "0-1", ""),  # its deletion is not over
        (draft(pod(0, R), gone=(pod(1, S),)), "0", "1"),
        (draft(pod(0, R), gone=(pod(1, R),)), "0", ""),
        (draft(pod(0, R), state='{"v":1,"d":{"w":"2"}}'), "0", "2"),
        # What belongs to an older version or to a smaller Job counts no more,
        # unless the kill was to keep what had ended.
        (draft(pod(0, R), pod(1, S), version=1, state='{"v":1,"n":1}'), "", ""),
        (draft(pod(0, R), pod(1, S), version=1, state='{"v":1,"n":1,"k":true}'), "", "1"),
        (draft(gone=(pod(1, S),), version=1), "", ""),
        (draft(pod(0, R), pod(2, S), replicas=1), "0", ""),
        (draft(pod(0, R), state='{"v":1,"d":{"w":"2"}}', replicas=1), "0", ""),
        # A Job that is over has no living pods, and those that succeeded have.
        (draft(pod(0, R), pod(1, S), phase="Completed", version=1), "", "1"),
    ],
)
def test_stock(one: Draft, alive: str, done: str) -> None:
    note_done(one)
    take_stock(one)
    assert (str(one.alive["w"]), str(one.done["w"])) == (alive, done)


def test_a_pod_that_succeeded_and_is_gone_is_done_also_when_the_job_is_stopped_in_that_moment() -> (
    None
):
    for keep, done in ((True, "1"), (False, "")):
        one = draft(pod(0, R), gone=(pod(1, S),))
        note_done(one)
        one.kill(keep=keep)
        take_stock(one)
        assert str(one.done["w"]) == done


def test_stock_of_tasks_that_the_job_no_longer_has_is_forgotten() -> None:
    one = draft(state='{"v":1,"l":{"old":"0"},"d":{"old":"1"}}')
    take_stock(one)
    assert one.alive.keys() == one.done.keys() == {"w"}


@pytest.mark.parametrize(
    ("one", "removed"),
    [
        (draft(pod(0, R), pod(1, F)), []),
        (draft(pod(0, R), pod(2, R), replicas=1), ["j-w-2"]),
        (draft(pod(0, R), pod(1, R, version=1), version=1), ["j-w-0"]),
        (draft(pod(0, T), pod(1, R), version=1), ["j-w-1"]),  # the other is on its way
        (draft(pod(0, R), pod(1, S), phase="Aborting"), ["j-w-0"]),
        (draft(pod(0, R, task="old")), ["j-old-0"]),
    ],
)
def test_pods_that_go(one: Draft, removed: list[str]) -> None:
    assert [facts.name for facts in pods_to_remove(one)] == removed


@pytest.mark.parametrize(
    ("one", "indices"),
    [
        (draft(), [0, 1, 2]),
        (draft(pod(1, R)), [0, 2]),
        (draft(pod(1, F)), [0, 2]),
        (draft(state='{"v":1,"d":{"w":"0-1"}}'), [2]),
        # New pods wait until the last of the old ones is no more.
        (draft(pod(1, T), version=1), []),
        (draft(pod(1, R), version=1), []),
        (draft(pod(1, R, version=1), version=1), [0, 2]),
    ],
)
def test_places_that_are_filled(one: Draft, indices: list[int]) -> None:
    assert places_to_fill(one, NOBODY) == tuple(("w", index) for index in indices)


def test_a_task_that_waits_for_its_turn_gets_no_pods() -> None:
    assert places_to_fill(draft(), frozenset({"w"})) == ()


def test_places_that_are_held_back_get_no_pods() -> None:
    assert places_to_fill(draft(), NOBODY, {"w": IndexSet.of(1, 2)}) == (("w", 0),)


def test_neither_more_than_a_batch_is_removed_at_once_nor_more_created() -> None:
    many = BATCH + 1
    assert len(places_to_fill(draft(replicas=many), NOBODY)) == BATCH
    old = draft(*(pod(index, R) for index in range(many)), replicas=many, version=1)
    assert len(pods_to_remove(old)) == BATCH
