"""Whether a Lease is renewed, whatever the clocks of others say."""

from typing import Any

import pytest

from vcjob.kubernetes.lease_sightings import Holding, Sightings


def lease(renewed: str, holder: str = "a", seconds: int | None = 15) -> dict[str, Any]:
    return {
        "spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": seconds}
    }


FREE, UNCERTAIN, HELD, ABANDONED = Holding


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        ([(0, None)], [FREE]),
        ([(0, {})], [FREE]),
        ([(0, {"spec": None})], [FREE]),
        ([(0, lease("t1", holder=""))], [FREE]),
        ([(0, lease("t1")), (2, lease("t2"))], [UNCERTAIN, HELD]),
        ([(0, lease("t1")), (14, lease("t1")), (16, lease("t1"))],
         [UNCERTAIN, UNCERTAIN, ABANDONED]),
        ([(0, lease("t1")), (2, lease("t2")), (16, lease("t2")), (18, lease("t2"))],
         [UNCERTAIN, HELD, HELD, ABANDONED]),
        # Who was not there before and is now has just taken it.
        ([(0, None), (30, lease("t1"))], [FREE, HELD]),
        ([(0, lease("t1", "a")), (20, lease("t1", "a")), (21, lease("t9", "b"))],
         [UNCERTAIN, ABANDONED, HELD]),
        # A graceful end names nobody any more.
        ([(0, lease("t1")), (2, lease("t2")), (3, lease("t3", ""))], [UNCERTAIN, HELD, FREE]),
        ([(0, lease("t1", seconds=None)), (14, lease("t1", seconds=None)),
          (16, lease("t1", seconds=None))], [UNCERTAIN, UNCERTAIN, ABANDONED]),
        ([(0, lease("t1", seconds=60)), (50, lease("t1", seconds=60))], [UNCERTAIN, UNCERTAIN]),
    ],
)  # fmt: skip
def test_a_lease_is_what_it_was_seen_to_be(
    looks: list[tuple[float, Any]], expected: list[Holding]
) -> None:
    sightings = Sightings()
    assert [sightings.look(seen, now) for now, seen in looks] == expected
