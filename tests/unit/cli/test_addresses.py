"""Options that name an address."""

import click
import pytest

from vcjob.cli.addresses import AddressType


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("1.2.3.4:99999", "99999 is not a port: they end at 65535"),
        (":" + "9" * 5000, "is not a port"),
        (":²", "is not HOST:PORT"),
        (":-1", "is not HOST:PORT"),
        ("nowhere:80", "is not an address of this machine"),
    ],
)
def test_what_is_wrong_is_said(value: str, reason: str) -> None:
    with pytest.raises(click.BadParameter, match=reason):
        AddressType().convert(value, None, None)


def test_host_and_port_may_be_left_out() -> None:
    read = [AddressType().convert(value, None, None) for value in ("[::1]:65535", ":80", "[::1]")]
    assert read == [("::1", 65535), ("127.0.0.1", 80), ("::1", 0)]
