"""Netlink messages and the socket, against this machine's kernel where that needs no rights."""

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.local.network import netlink
from vcjob.local.network.netlink import Netlink, NetlinkError, Request, attribute, nested, text

ROUTE = 0
GET_LINK, SET_LINK = 18, 19
LINK = struct.Struct("=BxHiII")
NOTHING = 1 << 30


def link(index: int, kind: int = GET_LINK, **more: object) -> Request:
    payload = LINK.pack(0, 0, index, 0, 0)
    return Request("look at a link", kind, 0, payload, **more)  # type: ignore[arg-type]


def test_attributes_are_padded_to_four_bytes() -> None:
    assert attribute(3, b"abcde") == struct.pack("=HH", 9, 3) + b"abcde\0\0\0"


@given(st.lists(st.tuples(st.integers(1, 100), st.binary(max_size=9)), max_size=5))
def test_attributes_are_read_as_they_were_written(pairs: list[tuple[int, bytes]]) -> None:
    packed = b"".join(attribute(kind, value) for kind, value in pairs)
    assert list(netlink.attributes(packed)) == pairs


@given(st.binary(max_size=40))
def test_reading_attributes_ends(data: bytes) -> None:
    assert len(list(netlink.attributes(data))) <= 10


def test_nested_attributes() -> None:
    ((kind, inner),) = netlink.attributes(nested(7, text(1, "eth0")))
    assert (kind, list(netlink.attributes(inner))) == (7, [(1, b"eth0\0")])


def test_a_question_is_answered() -> None:
    with Netlink(ROUTE) as links:
        answer = links.ask(link(1))
    assert dict(netlink.attributes(answer[LINK.size :]))[3] == b"lo\0"


def test_a_refused_question_names_step_and_reason() -> None:
    with Netlink(ROUTE) as links, pytest.raises(NetlinkError) as raised:
        links.ask(link(NOTHING))
    assert str(raised.value) == "cannot look at a link: No such device"
    assert raised.value.number == errno.ENODEV


def test_the_first_refused_of_many_requests_is_raised_and_the_socket_goes_on() -> None:
    requests = [link(NOTHING, SET_LINK, ignore=(errno.ENODEV, errno.EPERM))] * 300
    requests.append(Request("do the second", SET_LINK, 0, LINK.pack(0, 0, NOTHING, 0, 0)))
    requests.append(Request("do the third", SET_LINK, 0, LINK.pack(0, 0, NOTHING, 0, 0)))
    with Netlink(ROUTE) as links:
        with pytest.raises(NetlinkError, match="cannot do the second: "):
            links.run(requests)
        assert links.ask(link(1))


def test_what_may_be_ignored_is() -> None:
    with Netlink(ROUTE) as links:
        links.run([link(NOTHING, SET_LINK, ignore=(errno.ENODEV, errno.EPERM))])


def test_a_filter_that_may_not_be_changed_is_an_error_and_no_wait() -> None:
    # An unknown request to nf_tables: refused as such, or, for a user, for want of rights.
    wrong = Request("do what there is not", 10 << 8 | 0xFE, 0, struct.pack("!BBH", 1, 0, 0))
    with (
        Netlink(12) as filters,
        pytest.raises(NetlinkError, match="do what there is not") as raised,
    ):
        filters.transact([wrong])
    assert raised.value.number in (errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM)
