"""What is kept of certificates, step by step."""

from datetime import UTC, datetime, timedelta

import pytest

from vcjob.admission.rotation import (
    LAST_MOMENT,
    RENEWED_BEFORE,
    SETTLED_AFTER,
    Kept,
    data_of,
    decide,
    is_usable,
    kept_of,
)
from vcjob.controller.certificates import VALID, Made, make_certificate, read_certificates

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NAMES = ("webhook.ns.svc",)
RENEWAL = NOW + VALID - RENEWED_BEFORE


def step(kept: Kept | None, now: datetime, *, known: bool = True, names=NAMES) -> Kept:
    def make() -> Made:
        return make_certificate(names, now, owner="a test")

    decided = decide(kept, names, now, known, make)
    assert is_usable(decided, names, now)
    return decided


@pytest.fixture(scope="module")
def first() -> Kept:
    return step(None, NOW)


@pytest.fixture(scope="module")
def renewing(first: Kept) -> Kept:
    return step(first, RENEWAL)


def test_it_stays_as_long_as_it_holds(first: Kept) -> None:
    assert step(first, NOW + timedelta(days=1)) is first
    assert step(first, RENEWAL - timedelta(seconds=1)) is first


def test_the_next_one_is_made_long_before_the_end_and_not_yet_shown(
    first: Kept, renewing: Kept
) -> None:
    assert (renewing.certificate, renewing.key) == (first.certificate, first.key)
    assert renewing.next_certificate
    assert renewing.authorities.startswith(first.authorities)
    assert len(read_certificates(renewing.authorities)) == 2


def test_the_next_one_is_shown_when_it_has_been_known_for_a_while(renewing: Kept) -> None:
    settled = RENEWAL + SETTLED_AFTER
    assert step(renewing, settled - timedelta(seconds=1)) is renewing
    assert step(renewing, settled, known=False) is renewing
    taken = step(renewing, settled)
    assert taken == Kept(renewing.next_certificate, renewing.next_key, renewing.authorities)


def test_without_news_from_api_servers_it_is_shown_in_the_last_moment(
    first: Kept, renewing: Kept
) -> None:
    end = NOW + VALID
    assert step(renewing, end - LAST_MOMENT - timedelta(seconds=1), known=False) is renewing
    taken = step(renewing, end - LAST_MOMENT, known=False)
    assert taken.certificate == renewing.next_certificate


def test_authorities_that_have_expired_are_forgotten_at_the_next_step(renewing: Kept) -> None:
    second = step(renewing, RENEWAL + SETTLED_AFTER)
    third = step(second, RENEWAL + VALID - RENEWED_BEFORE)
    assert len(read_certificates(third.authorities)) == 2
    assert read_certificates(third.authorities)[0] == read_certificates(second.authorities)[1]


def test_what_has_expired_while_nobody_ran_is_replaced_at_once(first: Kept) -> None:
    later = NOW + VALID + timedelta(days=1)
    replaced = step(first, later, known=False)
    assert replaced.certificate != first.certificate
    assert len(read_certificates(replaced.authorities)) == 1


def test_the_next_one_helps_where_the_present_one_was_lost(renewing: Kept) -> None:
    broken = Kept(b"", b"", renewing.authorities, renewing.next_certificate, renewing.next_key)
    assert step(broken, RENEWAL).certificate == renewing.next_certificate


def test_other_names_need_another_certificate(first: Kept) -> None:
    other = step(first, NOW, names=("other.ns.svc",))
    assert other.certificate != first.certificate
    assert len(read_certificates(other.authorities)) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"certificate": b"junk"},
        {"key": b"junk"},
        {"authorities": b""},
        {"authorities": make_certificate(NAMES, NOW, owner="a stranger").authority},
        {"key": make_certificate(NAMES, NOW, owner="a stranger").key},
    ],
    ids=["certificate", "key", "no authority", "another authority", "another key"],
)
def test_what_does_not_fit_together_is_replaced(first: Kept, change: dict[str, bytes]) -> None:
    broken = Kept(**{**{key: getattr(first, key) for key in first.__struct_fields__}, **change})
    assert not is_usable(broken, NAMES, NOW)
    assert step(broken, NOW).certificate not in (broken.certificate, first.certificate)


def test_a_next_one_of_no_use_is_dropped(first: Kept) -> None:
    broken = Kept(first.certificate, first.key, first.authorities, b"junk", b"junk")
    assert step(broken, NOW + timedelta(days=2)) == first


def test_the_secrets_data_is_what_was_kept(renewing: Kept) -> None:
    assert kept_of(data_of(renewing)) == renewing
    assert set(data_of(step(renewing, RENEWAL + SETTLED_AFTER))) == {"tls.crt", "tls.key", "ca.crt"}
    assert kept_of({}) == Kept(b"", b"", b"")
