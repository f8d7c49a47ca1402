"""Drafts of a small Job with one task, to try decisions on."""

from typing import Any

from vcjob.api.types import Job, Object
from vcjob.core.draft import Draft, begin
from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.observed import Observed
from vcjob.core.state import State, encode_state

NOW = 1000.0


def draft(
    pods: list[PodFacts],
    policies: Any = (),
    phase: str = "Running",
    state: State | None = None,
    annotations: Any = None,
    version: int = 1,
    partition_size: int = 0,
) -> Draft:
    observed = Observed()
    for facts in pods:
        observed.set(facts)
    status: Object = {"state": {"phase": phase}}
    task: Object = {"name": "w", "replicas": 4}
    if partition_size:
        task["partitionPolicy"] = {"partitionSize": partition_size}
    if state:
        status["controlledResources"] = {"vcjob.dev/state": encode_state(state)}
    whole = {
        "metadata": {
            "name": "lc",
            "annotations": annotations or {},
            "resourceVersion": str(version),
        },
        "spec": {"tasks": [task], "policies": policies},
        "status": status,
    }
    return begin(Job.of(whole), observed, None)


def pod(index: int, phase: PodPhase, **more: Any) -> PodFacts:
    ended = phase if phase.is_finished else None
    name = f"lc-w-{index}"
    return PodFacts(name, name, "w", index, 0, 0, phase, ended=ended, **more)


def timers(one: Draft) -> list[tuple[str, str, float, str]]:
    return [(t.event, t.action, t.due, t.indices) for t in one.state.timers]
