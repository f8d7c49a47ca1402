"""Who has which address."""

from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.local.network.addresses import NODE_ADDRESS, POD_SUBNET, AddressPool, SubnetFull


def test_addresses_come_lowest_first_after_the_nodes() -> None:
    pool = AddressPool()
    assert [pool.take() for _ in range(3)] == [NODE_ADDRESS + 1, NODE_ADDRESS + 2, NODE_ADDRESS + 3]


def test_ten_thousand_pods_have_room() -> None:
    assert POD_SUBNET.num_addresses > 10_000


def test_a_released_address_rests() -> None:
    pool = AddressPool(quarantine=2)
    first, second, third = (pool.take() for _ in range(3))
    pool.release(second)
    pool.release(first)
    assert pool.take() > third
    pool.release(third)
    assert pool.take() == second  # the first released of three


def test_a_full_subnet_uses_what_rests_and_then_says_that_it_is_full() -> None:
    pool = AddressPool(IPv4Network("10.0.0.0/29"))
    taken = [pool.take() for _ in range(5)]
    assert IPv4Address("10.0.0.7") not in taken  # the broadcast address
    with pytest.raises(SubnetFull, match=r"all 5 pod addresses of 10\.0\.0\.0/29 are taken"):
        pool.take()
    pool.release(taken[3])
    assert pool.take() == taken[3]


@given(st.lists(st.integers(0, 8)))
def test_no_address_is_taken_twice(steps: list[int]) -> None:
    """0 to 3 take an address, a larger number releases one (twice, which must do no harm)."""
    pool = AddressPool(IPv4Network("10.0.0.0/28"), quarantine=3)
    taken: list[IPv4Address] = []
    for step in steps:
        if step > 3 and taken:
            gone = taken.pop(step % len(taken))
            pool.release(gone)
            pool.release(gone)
        elif len(taken) < 13:
            taken.append(pool.take())
        assert len(set(taken)) == len(taken)
