import pytest

from vcjob.local.node import identity
from vcjob.local.node.identity import (
    IdMaps,
    IdRange,
    choose_maps,
    outside,
    parse_map,
    parse_subordinate,
)


def test_parse_map() -> None:
    assert parse_map("         0       1000          1\n 1 100000 65536\n") == (
        IdRange(0, 1000, 1),
        IdRange(1, 100000, 65536),
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("me:100000:65536\n", ((100000, 65536),)),
        ("1000:5:6\nme:7:8\nother:9:9\n", ((5, 6), (7, 8))),
        ("", ()),
        ("me:x:1\n:::\nme\n", ()),
    ],
)
def test_parse_subordinate(text: str, found: tuple[tuple[int, int], ...]) -> None:
    assert parse_subordinate(text, "me", 1000) == found


def test_outside_finds_the_machines_number() -> None:
    ranges = (IdRange(0, 1000, 1), IdRange(1, 100000, 10))
    assert [outside(ranges, n) for n in (0, 1, 10, 11)] == [1000, 100000, 100009, None]


def as_user(
    monkeypatch: pytest.MonkeyPatch, number: int, helpers: bool, subid: str, status: str = ""
) -> None:
    monkeypatch.setattr(identity.os, "geteuid", lambda: number)
    monkeypatch.setattr(identity.os, "getegid", lambda: number)
    monkeypatch.setattr(identity.shutil, "which", lambda name: name if helpers else None)
    monkeypatch.setattr(identity, "_read", lambda path: status if "status" in path else subid)
    monkeypatch.setattr(identity, "_user_name", lambda number: "me")


@pytest.mark.parametrize(
    ("helpers", "subid"), [(False, "me:100000:65536"), (True, ""), (True, "other:1:2")]
)
def test_a_user_without_ranges_gets_one_number(
    monkeypatch: pytest.MonkeyPatch, helpers: bool, subid: str
) -> None:
    as_user(monkeypatch, 1000, helpers, subid)
    one = (IdRange(0, 1000, 1),)
    assert choose_maps() == IdMaps(one, one)


def test_a_user_with_ranges_gets_them_after_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    as_user(monkeypatch, 1000, True, "me:100000:65536")
    ranges = (IdRange(0, 1000, 1), IdRange(1, 100000, 65536))
    assert choose_maps() == IdMaps(ranges, ranges, helper=True)


def test_where_set_uid_programs_gain_nothing_a_user_gets_one_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    as_user(monkeypatch, 1000, True, "me:100000:65536", "Name:\tx\nNoNewPrivs:\t1\nSeccomp:\t0\n")
    assert not choose_maps().helper
    as_user(monkeypatch, 1000, True, "me:100000:65536", "Name:\tx\nNoNewPrivs:\t0\nSeccomp:\t0\n")
    assert choose_maps().helper


def test_root_keeps_its_numbers_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    as_user(monkeypatch, 0, False, "")
    assert all(r.inside == r.outside for r in choose_maps().users)
    (moved,) = choose_maps(move_root=True).users
    assert (moved.inside, moved.count) == (0, 65536)
    assert moved.outside > 0
