"""Whether and when containers start again."""

from typing import Any

import pytest

from vcjob.local.agent.podphase import Role
from vcjob.local.agent.restarts import BackOff, restarts, role_of

ON_42 = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
NOT_1 = [{"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [1]}}]


@pytest.mark.parametrize(
    ("pod_policy", "container", "role", "exit_code", "again"),
    [
        ("Always", {}, Role.MAIN, 0, True),
        ("OnFailure", {}, Role.MAIN, 0, False),
        ("OnFailure", {}, Role.MAIN, 1, True),
        ("Never", {}, Role.MAIN, 1, False),
        ("Always", {}, Role.INIT, 0, False),
        ("Always", {}, Role.INIT, 1, True),
        ("Never", {}, Role.INIT, 1, False),
        ("Never", {"restartPolicy": "Always"}, Role.SIDECAR, 0, True),
        ("Always", {"restartPolicy": "Never"}, Role.MAIN, 1, False),
        ("Never", {"restartPolicyRules": ON_42}, Role.MAIN, 42, True),
        ("Never", {"restartPolicyRules": ON_42}, Role.MAIN, 1, False),
        ("Never", {"restartPolicyRules": NOT_1}, Role.MAIN, 2, True),
        ("Never", {"restartPolicyRules": NOT_1}, Role.MAIN, 1, False),
    ],
)
def test_restart_follows_rules_then_the_containers_policy_then_the_pods(
    pod_policy: str, container: dict[str, Any], role: Role, exit_code: int, again: bool
) -> None:
    assert restarts(pod_policy, container, role, exit_code) is again


def test_an_init_container_that_always_restarts_is_a_sidecar() -> None:
    assert role_of({"restartPolicy": "Always"}, init=True) is Role.SIDECAR
    assert role_of({}, init=True) is Role.INIT
    assert role_of({"restartPolicy": "Always"}, init=False) is Role.MAIN


def delays(back_off: BackOff, *ran: float) -> list[float]:
    waits = []
    for seconds in ran:
        back_off, delay = back_off.after(seconds)
        waits.append(delay)
    return waits


def test_the_first_restart_is_immediate_and_each_further_one_waits_twice_as_long() -> None:
    assert delays(BackOff(), *[1.0] * 8) == [0, 10, 20, 40, 80, 160, 300, 300]


def test_a_long_run_starts_the_back_off_anew() -> None:
    assert delays(BackOff(), 1, 1, 1, 700, 1) == [0, 10, 20, 0, 10]
