"""Phase, conditions and status of pods from their containers' states."""

import pytest

from vcjob.local.agent.podphase import (
    CONFIG_ERROR,
    CREATE_ERROR,
    ContainerFacts,
    PodFacts,
    Role,
    Running,
    State,
    Terminated,
    Waiting,
    has_begun,
    phase_of,
    pod_status,
    qos_class,
)

NOW = 1_800_000_000.0


def ended(code: int) -> Terminated:
    return Terminated(code, "Completed" if code == 0 else "Error", NOW - 5, NOW - 1)


def container(state: State, role: Role = Role.MAIN, **more: object) -> ContainerFacts:
    return ContainerFacts("c", role=role, state=state, **more)  # type: ignore[arg-type]


RUNS = Running(NOW - 3)
NEVER, ON_FAILURE, ALWAYS = "Never", "OnFailure", "Always"


@pytest.mark.parametrize(
    ("policy", "over", "containers", "phase"),
    [
        (NEVER, False, [container(Waiting())], "Pending"),
        (NEVER, False, [container(RUNS)], "Running"),
        (NEVER, False, [container(RUNS), container(Waiting())], "Pending"),
        (NEVER, False, [container(RUNS), container(ended(1))], "Running"),
        (NEVER, True, [container(ended(0)), container(ended(0))], "Succeeded"),
        (NEVER, True, [container(ended(0)), container(ended(1))], "Failed"),
        (ON_FAILURE, False, [container(ended(1))], "Running"),
        (ALWAYS, False, [container(ended(0))], "Running"),
        (ALWAYS, False, [container(Waiting("CrashLoopBackOff"), last=ended(1))], "Running"),
        (ALWAYS, True, [container(ended(0))], "Succeeded"),
        (NEVER, False, [container(RUNS, Role.INIT), container(Waiting())], "Pending"),
        (NEVER, False, [container(ended(1), Role.INIT), container(Waiting())], "Failed"),
        (ON_FAILURE, False, [container(ended(1), Role.INIT), container(Waiting())], "Pending"),
        (NEVER, False, [container(ended(0), Role.INIT), container(RUNS)], "Running"),
        (NEVER, False, [container(RUNS, Role.SIDECAR, started=True), container(RUNS)], "Running"),
        (NEVER, False, [container(RUNS, Role.SIDECAR), container(Waiting())], "Pending"),
        (NEVER, True, [container(ended(143), Role.SIDECAR), container(ended(0))], "Succeeded"),
        (NEVER, True, [container(Waiting())], "Failed"),
    ],
)
def test_phase_follows_from_containers(
    policy: str, over: bool, containers: list[ContainerFacts], phase: str
) -> None:
    assert phase_of(PodFacts(restart_policy=policy, over=over), containers) == phase


def test_a_pod_that_was_ended_for_a_reason_has_failed_and_says_it() -> None:
    pod = PodFacts(over=True, reason="DeadlineExceeded", message="too long")
    status = pod_status(pod, [container(ended(0))], {}, NOW)
    assert (status["phase"], status["reason"], status["message"]) == (
        "Failed", "DeadlineExceeded", "too long",
    )  # fmt: skip


def conditions(status: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {c["type"]: c["status"] for c in status["conditions"]}


def test_a_pod_is_ready_when_all_of_its_containers_are() -> None:
    pod = PodFacts(address="10.128.0.2")
    one = container(RUNS, ready=True, started=True)
    both = pod_status(pod, [one, container(RUNS, ready=True)], {}, NOW)
    half = pod_status(pod, [one, container(RUNS)], {}, NOW)
    assert conditions(both)["Ready"] == "True"
    assert conditions(half)["Ready"] == conditions(half)["ContainersReady"] == "False"
    assert conditions(half)["Initialized"] == "True"


def test_a_readiness_gate_keeps_a_pod_unready_until_its_condition_is_true() -> None:
    pod = PodFacts(readiness_gates=("example.com/gate",))
    containers = [container(RUNS, ready=True)]
    closed = conditions(pod_status(pod, containers, {}, NOW))
    gate = {"type": "example.com/gate", "status": "True"}
    opened = conditions(pod_status(pod, containers, {"conditions": [gate]}, NOW))
    assert (closed["Ready"], closed["ContainersReady"]) == ("False", "True")
    assert (opened["Ready"], opened["example.com/gate"]) == ("True", "True")


def test_a_condition_keeps_the_time_of_its_last_change_and_others_conditions_stay() -> None:
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "then"}
    first = pod_status(PodFacts(), [container(Waiting())], {"conditions": [scheduled]}, NOW)
    second = pod_status(PodFacts(), [container(RUNS, ready=True)], first, NOW + 60)
    before = {c["type"]: c for c in first["conditions"]}
    after = {c["type"]: c for c in second["conditions"]}
    assert after["PodScheduled"] == scheduled
    assert after["Initialized"] == before["Initialized"]
    assert after["Ready"]["lastTransitionTime"] > before["Ready"]["lastTransitionTime"]


def test_an_ended_pod_is_not_ready_because_it_completed() -> None:
    status = pod_status(PodFacts(over=True), [container(ended(0))], {}, NOW)
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "PodCompleted")


@pytest.mark.parametrize("code", [0, 1])
def test_an_init_container_is_ready_when_it_has_succeeded(code: int) -> None:
    status = pod_status(PodFacts(), [container(ended(code), Role.INIT)], {}, NOW)
    assert status["initContainerStatuses"][0]["ready"] is (code == 0)


def test_container_status_tells_state_last_state_and_restarts() -> None:
    facts = container(RUNS, last=ended(3), restarts=2, id="uid/c/2")
    (shown,) = pod_status(PodFacts(), [facts], {}, NOW)["containerStatuses"]
    assert shown["restartCount"] == 2
    assert shown["state"] == {"running": {"startedAt": "2027-01-15T07:59:57Z"}}
    assert shown["lastState"]["terminated"]["exitCode"] == 3
    assert shown["containerID"] == "vcjob://uid/c/2"


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([{}], "BestEffort"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}], "Guaranteed"),
        (
            [{"limits": {"cpu": "1", "memory": "1Gi"},
              "requests": {"cpu": "1000m", "memory": "1024Mi"}}],
            "Guaranteed",
        ),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}], "Burstable"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}, {}], "Burstable"),
        ([{"limits": {"nvidia.com/gpu": "1"}}], "BestEffort"),
    ],
)  # fmt: skip
def test_qos_class(resources: list[dict[str, object]], expected: str) -> None:
    spec = {"containers": [{"name": "c", "resources": one} for one in resources]}
    assert qos_class(spec) == expected


NO_VOLUME = Waiting(message="its volume lacks a ConfigMap")
NO_VARIABLE = Waiting(CONFIG_ERROR, "its environment lacks a ConfigMap")
INITIALIZING = Waiting("PodInitializing")


@pytest.mark.parametrize(
    ("containers", "begun"),
    [
        ([container(NO_VOLUME)], False),
        ([container(NO_VARIABLE)], False),
        ([container(Waiting(CREATE_ERROR, "the disk is full"))], False),
        ([container(NO_VARIABLE), container(NO_VARIABLE)], False),
        ([container(NO_VOLUME, Role.INIT), container(INITIALIZING)], False),
        ([container(NO_VOLUME, Role.INIT), container(NO_VOLUME, Role.INIT)], False),
        ([container(Waiting())], True),  # it may have been told to start since
        ([container(RUNS)], True),
        ([container(NO_VARIABLE), container(Waiting())], True),
        ([container(NO_VARIABLE, last=ended(1), restarts=1)], True),
        ([container(ended(0), Role.INIT), container(NO_VARIABLE)], True),
        ([container(RUNS, Role.SIDECAR), container(NO_VARIABLE)], True),
        ([], True),
    ],
)
def test_no_container_has_begun_while_those_that_come_first_lack_something(
    containers: list[ContainerFacts], begun: bool
) -> None:
    assert has_begun(pod_status(PodFacts(), containers, {}, NOW)) is begun
