"""What a Lease says, and when it has run out for one who only looks at it."""

from typing import Any

import pytest

from vcjob.controller.leases import USUAL_SECONDS, Expiry, LeaseSpec


def lease(holder: str = "a", seconds: Any = 10, renewed: str = "1") -> dict[str, Any]:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": renewed}
    return {"spec": spec}


@pytest.mark.parametrize(
    ("given", "spec"),
    [
        (None, LeaseSpec()),
        ({}, LeaseSpec()),
        ({"spec": None}, LeaseSpec()),
        ({"spec": {"holderIdentity": None, "leaseDurationSeconds": 0}}, LeaseSpec()),
        ({"spec": {"holderIdentity": "a", "leaseDurationSeconds": "30"}},
         LeaseSpec("a", lease_duration_seconds=30.0)),
        ({"spec": {"holderIdentity": "a", "leaseTransitions": {}}}, LeaseSpec("a")),
        ({"spec": {"holderIdentity": "a", "leaseTransitions": "many"}}, LeaseSpec()),
    ],
)  # fmt: skip
def test_what_is_read(given: Any, spec: LeaseSpec) -> None:
    assert LeaseSpec.of(given) == spec


def test_it_runs_out_when_it_has_stayed_the_same_for_as_long_as_it_says() -> None:
    expiry = Expiry()
    assert expiry.at == float("-inf"), "nobody holds it"
    expiry.look(lease(), 100.0)
    expiry.look(lease(), 105.0)
    assert expiry.at == 110.0
    expiry.look(lease(renewed="2"), 109.0)
    assert expiry.at == 119.0
    expiry.look(lease(seconds=None, renewed="3"), 110.0)
    assert expiry.at == 110.0 + USUAL_SECONDS


def test_one_that_vanishes_is_held_until_it_runs_out_and_one_given_up_is_free_at_once() -> None:
    expiry = Expiry()
    expiry.look(lease(), 100.0)
    expiry.look(None, 101.0)
    assert expiry.at == 110.0
    expiry.look(lease(holder=""), 102.0)
    assert expiry.at == float("-inf")
