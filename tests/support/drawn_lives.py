"""Random Jobs for the tests of whole lives: all that the lifecycle reads, in small numbers."""

from typing import Any

from hypothesis import strategies as st

from vcjob.api.defaults import apply_defaults
from vcjob.api.names import MINIMUM_FIRST, UNCOUNTED_EVENTS
from vcjob.api.policies import ACTIONS
from vcjob.api.types import Object

NAME = "lc"
EVENTS = ("PodFailed", "PodEvicted", "PodPending", "TaskCompleted", "TaskFailed", "Unknown", "*")
UNCOUNTABLE = ("PodFailed", "PodEvicted", "TaskFailed", "Unknown")
"""What need not happen again: of the others a Job could go on for ever."""
LATE_QUEUE = "late"
LATE_CLAIM = "later"
LATE_CLASS = "latest"
CLASS = "urgent"

actions = st.sampled_from(ACTIONS)
seldom = st.integers(0, 3).map(lambda number: number == 0)
timeouts = st.sampled_from(["", "", "", "5s", "30s"])
seldom_none = st.sampled_from(["5s", "5s", "30s", ""])  # without one it never matches


@st.composite
def policies(draw: Any) -> list[Object]:
    """Policies of a task or a Job."""
    found: list[Object] = []
    for _ in range(draw(st.integers(0, 2))):
        policy: Object = {"action": draw(actions)}
        match draw(st.sampled_from(["events", "events", "event", "exitCode"])):
            case "events":
                policy["events"] = draw(st.lists(st.sampled_from(EVENTS), min_size=1, max_size=2))
            case "event":
                policy["event"] = draw(st.sampled_from(EVENTS))
            case _:
                policy["exitCode"] = draw(st.sampled_from([1, 3]))
        is_pending = "PodPending" in (policy.get("event"), *policy.get("events", ()))
        if timeout := draw(seldom_none if is_pending else timeouts):
            policy["timeout"] = timeout
        found.append(policy)
    return found


@st.composite
def tasks(draw: Any) -> list[Object]:
    """One to three tasks, which may depend on those before."""
    found: list[Object] = []
    for name in ["ps", "worker", "eval"][: draw(st.integers(1, 3))]:
        replicas = draw(st.sampled_from([0, 1, 1, 2, 2, 3, 3]))
        restarts = draw(st.sampled_from(["Never", "Never", "OnFailure", "Always"]))
        spec = {"restartPolicy": restarts, "containers": [{"name": "main", "image": "busybox"}]}
        task: Object = {"name": name, "replicas": replicas, "policies": draw(policies())}
        task["template"] = {"spec": spec}
        if draw(st.booleans()):
            task["minAvailable"] = draw(st.integers(0, replicas))
        if found and draw(seldom):
            earlier = st.sampled_from([one["name"] for one in found])
            names = draw(st.lists(earlier, min_size=1, max_size=2, unique=True))
            task["dependsOn"] = {"name": names, "iteration": draw(st.sampled_from(["any", "all"]))}
        if draw(seldom):
            task["partitionPolicy"] = {"totalPartitions": 2, "partitionSize": 2}
        if draw(seldom):
            task["maxRetry"] = draw(st.integers(1, 2))
        found.append(task)
    return found


@st.composite
def annotations(draw: Any, spec: Object) -> Object:
    """Those of ours that change how a Job goes on."""
    found: Object = {}
    if draw(seldom):
        events = st.sampled_from(_with_restarts(spec) or UNCOUNTABLE)
        chosen = draw(st.lists(events, min_size=1, max_size=2, unique=True))
        found[UNCOUNTED_EVENTS] = ",".join(chosen)
    if draw(seldom):
        found[MINIMUM_FIRST] = "true"
    return found


def _with_restarts(spec: Object) -> list[str]:
    """The events whose restarts may be free and that lead to some."""
    policies = [one for part in (spec, *spec["tasks"]) for one in part["policies"]]
    restarting = [one for one in policies if one["action"].startswith("Restart")]
    events = {event for one in restarting for event in (one.get("event"), *one.get("events", ()))}
    return [event for event in UNCOUNTABLE if event in events or "*" in events]


@st.composite
def jobs(draw: Any) -> Object:
    """A Job as admission leaves it, also one whose queue or claim is not there yet."""
    spec: Object = {
        "tasks": draw(tasks()),
        "plugins": {"svc": [], "env": [], **({"ssh": []} if draw(st.booleans()) else {})},
        "policies": draw(policies()),
        "maxRetry": draw(st.integers(1, 4)),
    }
    replicas = sum(task["replicas"] for task in spec["tasks"])
    if draw(seldom):
        spec["minAvailable"] = draw(st.integers(0, replicas))
    if draw(seldom):
        spec["minSuccess"] = draw(st.integers(1, 3))
    if draw(seldom):
        spec["priorityClassName"] = CLASS
    if draw(seldom):
        spec["ttlSecondsAfterFinished"] = draw(st.sampled_from([0, 20]))
    match draw(st.sampled_from([""] * 9 + ["own", "late claim", "late queue", "late class"])):
        case "own":
            size = {"resources": {"requests": {"storage": "1Mi"}}}
            spec["volumes"] = [{"mountPath": "/own", "volumeClaim": size}]
        case "late claim":
            spec["volumes"] = [{"mountPath": "/late", "volumeClaimName": LATE_CLAIM}]
        case "late queue":
            spec["queue"] = LATE_QUEUE
        case "late class":
            spec["priorityClassName"] = LATE_CLASS
        case _:
            pass
    metadata = {"name": NAME, "annotations": draw(annotations(spec))}
    return apply_defaults({"metadata": metadata, "spec": spec})
