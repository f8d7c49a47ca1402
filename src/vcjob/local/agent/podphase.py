"""From the states of a pod's containers to its phase, conditions and status: pure.

Source of the rules: Kubernetes documentation, "Pod Lifecycle" (phases, container states,
conditions) and "Configure Quality of Service for Pods".
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import Any

import msgspec

from vcjob.api.quantity import parse_quantity
from vcjob.api.types import Object, all_containers
from vcjob.core.times import timestamp


class Role(StrEnum):
    """What a container is for: it runs before the others, beside them, or is what the pod does."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


class Waiting(msgspec.Struct, frozen=True, tag=True):
    """The container does not run yet, or not again yet."""

    reason: str = "ContainerCreating"
    message: str = ""


CONFIG_ERROR = "CreateContainerConfigError"
"""It waits for an object that its environment refers to."""

CREATE_ERROR = "CreateContainerError"
"""It waits for room."""


class Running(msgspec.Struct, frozen=True, tag=True):
    """The container runs, since ``started_at`` (seconds since 1970)."""

    started_at: float


class Terminated(msgspec.Struct, frozen=True, tag=True):
    """The container ended. Times are seconds since 1970."""

    exit_code: int
    reason: str
    started_at: float
    finished_at: float
    message: str = ""


State = Waiting | Running | Terminated


def is_lacking(state: State) -> bool:
    """Whether a container lacks something without which it is not started."""
    return isinstance(state, Waiting) and _tells_a_lack(state.reason, state.message)


def has_begun(status: Object) -> bool:
    """Whether a container may have run, by the status of a pod that was set up.

    None has if those that come first lack something: no container is started before it is written
    that it lacks nothing any more.
    """
    first = (status.get("initContainerStatuses") or ())[:1] or status.get("containerStatuses") or ()
    return not (first and all(_lacks(one) for one in first))


def _lacks(container: Object) -> bool:
    waiting = (container.get("state") or {}).get("waiting") or {}
    again = container.get("restartCount") or container.get("lastState")
    return not again and _tells_a_lack(waiting.get("reason", ""), waiting.get("message", ""))


def _tells_a_lack(reason: str, message: str) -> bool:
    return reason in (CONFIG_ERROR, CREATE_ERROR) or (reason == Waiting().reason and bool(message))


class ContainerFacts(msgspec.Struct, frozen=True):
    """What is known of one container of a pod.

    ``last`` is how it ended the time before; ``started`` says that its startup probe passed;
    ``id`` names its latest run.
    """

    name: str
    image: str = ""
    role: Role = Role.MAIN
    state: State = Waiting()
    last: Terminated | None = None
    restarts: int = 0
    ready: bool = False
    started: bool = False
    id: str = ""

    @property
    def is_over(self) -> bool:
        """Whether it has ended, be it to start again."""
        return isinstance(self.state, Terminated) or (
            isinstance(self.state, Waiting) and self.last is not None
        )


class PodFacts(msgspec.Struct, frozen=True):
    """What is known of a pod apart from its containers.

    ``over``: no container will run any more. ``reason`` and ``message`` say why it was ended, if
    not by itself; then it is Failed.
    """

    restart_policy: str = "Always"
    address: str = ""
    host_address: str = ""
    started_at: float = 0.0
    over: bool = False
    reason: str = ""
    message: str = ""
    readiness_gates: tuple[str, ...] = ()
    qos_class: str = "BestEffort"


def phase_of(pod: PodFacts, containers: Sequence[ContainerFacts]) -> str:
    """The pod's phase: Pending, Running, Succeeded or Failed."""
    if pod.reason:
        return "Failed"
    mains = [c for c in containers if c.role is Role.MAIN]
    if pod.over:
        ended = [c.state for c in mains if isinstance(c.state, Terminated)]
        well = len(ended) == len(mains) and not any(state.exit_code for state in ended)
        return "Succeeded" if well else "Failed"
    if not is_initialized(containers):
        failed = any(_failed(c) for c in containers if c.role is Role.INIT)
        return "Failed" if failed and pod.restart_policy == "Never" else "Pending"
    if any(isinstance(c.state, Waiting) and c.last is None for c in mains):
        return "Pending"
    return "Running"


def is_initialized(containers: Iterable[ContainerFacts]) -> bool:
    """Whether init containers have all done what they are for."""
    return all(_has_initialized(c) for c in containers)


def _has_initialized(container: ContainerFacts) -> bool:
    match container.role:
        case Role.INIT:
            return isinstance(container.state, Terminated) and container.state.exit_code == 0
        case Role.SIDECAR:
            return container.started or container.is_over
        case Role.MAIN:
            return True


def _failed(container: ContainerFacts) -> bool:
    return isinstance(container.state, Terminated) and container.state.exit_code != 0


def pod_status(
    pod: PodFacts, containers: Sequence[ContainerFacts], before: Object, now: float
) -> Object:
    """The status to write: ``before`` is the pod's status so far, for transition times."""
    phase = phase_of(pod, containers)
    status: dict[str, Any] = {
        "phase": phase,
        "conditions": _conditions(pod, containers, phase, before, now),
        "qosClass": pod.qos_class,
    }
    if pod.host_address:
        status |= {"hostIP": pod.host_address, "hostIPs": [{"ip": pod.host_address}]}
    if pod.address:
        status |= {"podIP": pod.address, "podIPs": [{"ip": pod.address}]}
    if pod.started_at:
        status["startTime"] = timestamp(pod.started_at)
    if pod.reason:
        status |= {"reason": pod.reason, "message": pod.message}
    inits = [_container_status(c) for c in containers if c.role is not Role.MAIN]
    if inits:
        status["initContainerStatuses"] = inits
    status["containerStatuses"] = [_container_status(c) for c in containers if c.role is Role.MAIN]
    return status


def run_number(container_status: Object, *, previous: bool) -> int | None:
    """The number (from 0 on) of a container's latest run, or of that in its ``lastState``.

    None if it was never started.
    """
    _, slash, number = str(container_status.get("containerID") or "").rpartition("/")
    if not slash:
        return None
    is_latest = not previous or "waiting" in (container_status.get("state") or {})
    return int(number) if is_latest else max(int(number) - 1, 0)


def _container_status(container: ContainerFacts) -> Object:
    status: dict[str, Any] = {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        # An init container is ready once it has done what it is for.
        "ready": container.ready or (container.role is Role.INIT and _has_initialized(container)),
        "restartCount": container.restarts,
        "started": container.started,
        "state": _state(container.state),
        "lastState": _state(container.last) if container.last else {},
    }
    if container.id:
        status["containerID"] = f"vcjob://{container.id}"
    return status


def _state(state: State) -> Object:
    match state:
        case Waiting(reason, message):
            return {"waiting": {"reason": reason} | ({"message": message} if message else {})}
        case Running(started_at):
            return {"running": {"startedAt": timestamp(started_at)}}
        case Terminated():
            ended: dict[str, Any] = {
                "exitCode": state.exit_code,
                "reason": state.reason,
                "startedAt": timestamp(state.started_at),
                "finishedAt": timestamp(state.finished_at),
            }
            return {"terminated": ended | ({"message": state.message} if state.message else {})}


def _conditions(
    pod: PodFacts,
    containers: Sequence[ContainerFacts],
    phase: str,
    before: Object,
    now: float,
) -> list[Object]:
    """Our conditions, with the time of their last change, after those of others."""
    ended = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "")
    unready = [c.name for c in containers if c.role is not Role.INIT and not c.ready]
    incomplete = [c.name for c in containers if not _has_initialized(c)]
    containers_ready = ("ContainersReady", not unready and not ended, ended or "ContainersNotReady",
                        f"containers with unready status: [{' '.join(unready)}]")  # fmt: skip
    known = {c["type"]: c for c in before.get("conditions") or ()}
    gates = [g for g in pod.readiness_gates if known.get(g, {}).get("status") != "True"]
    if containers_ready[1] and gates:
        ready = ("Ready", False, "ReadinessGatesNotReady",
                 f"conditions that are not True: [{' '.join(gates)}]")  # fmt: skip
    else:
        ready = ("Ready", *containers_ready[1:])
    wanted = (
        ("PodReadyToStartContainers", bool(pod.address) and not ended, "", ""),
        ("Initialized", not incomplete or phase == "Succeeded", "ContainersNotInitialized",
         f"containers with incomplete status: [{' '.join(incomplete)}]"),
        ready,
        containers_ready,
    )  # fmt: skip
    names = {type_ for type_, *_ in wanted}
    conditions = [c for c in before.get("conditions") or () if c["type"] not in names]
    for type_, true, reason, message in wanted:
        condition = {"type": type_, "status": "True" if true else "False"}
        if not true and reason:
            condition["reason"] = reason
            if reason != ended:
                condition["message"] = message
        old = known.get(type_)
        changed = old is None or old["status"] != condition["status"]
        when = timestamp(now) if changed or old is None else old["lastTransitionTime"]
        conditions.append(condition | {"lastTransitionTime": when})
    return conditions


def qos_class(pod_spec: Object) -> str:
    """The pod's quality of service class: Guaranteed, Burstable or BestEffort."""
    containers = all_containers(pod_spec)
    any_given, all_equal = False, True
    for container in containers:
        resources = container.get("resources") or {}
        limits, requests = _amounts(resources, "limits"), _amounts(resources, "requests")
        any_given = any_given or bool(limits or requests)
        if limits.keys() != {"cpu", "memory"} or {**limits, **requests} != limits:
            all_equal = False
    if not any_given:
        return "BestEffort"
    return "Guaranteed" if all_equal else "Burstable"


def _amounts(resources: Object, which: str) -> dict[str, Fraction]:
    given = ((name, parse_quantity(text)) for name, text in (resources.get(which) or {}).items())
    return {name: amount for name, amount in given if name in ("cpu", "memory") and amount}
