"""A webhook's own certificate: shared by replicas, renewed while they run, known to API servers."""

import asyncio
import base64
import errno
import os
import random
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcjob.admission import rotation
from vcjob.admission.certificates import KNOWN_AFTER, LOOKED_AT_EVERY, SECRET_NAME, OwnCertificate
from vcjob.admission.configurations import CONFIGURATION_NAME, webhook_configurations
from vcjob.admission.rotation import RENEWED_BEFORE, SETTLED_AFTER
from vcjob.api.kinds import (
    MUTATING_WEBHOOK_CONFIGURATION,
    SECRET,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)
from vcjob.api.types import Object
from vcjob.controller.certificates import (
    VALID,
    Made,
    is_signed_by,
    make_certificate,
    read_certificate,
    read_certificates,
)
from vcjob.controller.cluster import Cluster, Forbidden, Unavailable
from vcjob.controller.readiness import Readiness
from vcjob.local.store import Store

NAMESPACE, SERVICE = "vcjob-system", "vcjob-webhook"
NAME = f"{SERVICE}.{NAMESPACE}.svc"
START = datetime(2030, 1, 1, tzinfo=UTC).timestamp()
KINDS = (MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION)
RENEWAL = (VALID - RENEWED_BEFORE).total_seconds()


class Killed(Exception):
    """The process is no more."""


class Time:
    def __init__(self) -> None:
        self.seconds = START

    def now(self) -> float:
        return self.seconds

    async def sleep_until(self, when: float) -> None:
        self.seconds = max(self.seconds, when)
        await asyncio.sleep(0)


class Access:
    """A store as one replica reaches it; ``trouble`` is raised before or after a request."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.trouble: Callable[[str, Kind, bool], None] = untroubled

    def __getattr__(self, verb: str) -> Any:
        async def ask(kind: Kind, *arguments: Any, **more: Any) -> Object:
            self.trouble(verb, kind, False)
            await asyncio.sleep(0)
            answer: Object = await getattr(self._store, verb)(kind, *arguments, **more)
            self.trouble(verb, kind, True)
            return answer

        return ask


class Replica:
    def __init__(self, store: Store, time: Time) -> None:
        self.access = Access(store)
        self.readiness = Readiness()
        cluster: Cluster = self.access  # type: ignore[assignment]
        self.own = OwnCertificate(cluster, NAMESPACE, SERVICE, self.readiness, time, made)

    @property
    def shown(self) -> bytes:
        return self.own._shown

    async def is_taken_by(self, authority: str) -> bool:
        """Whether an API server that trusts an authority gets through the hand-shake."""

        async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        trusting = ssl.create_default_context(cadata=authority)
        async with await asyncio.start_server(close, "127.0.0.1", 0, ssl=self.own.context) as here:
            port = here.sockets[0].getsockname()[1]
            try:
                _, writer = await asyncio.open_connection(
                    "127.0.0.1", port, ssl=trusting, server_hostname=NAME
                )
            except ssl.SSLError:
                return False
            writer.close()
            return True


@cache
def made(names: tuple[str, ...], moment: datetime) -> Made:
    """As the real one makes it, but one for each moment, so that tests are quick."""
    return make_certificate(names, moment, owner="a test")


def new_made(names: tuple[str, ...], moment: datetime) -> Made:
    return make_certificate(names, moment, owner="a test")


async def store_with_configurations() -> Store:
    store = Store(lambda: START)
    for kind, configuration in zip(KINDS, webhook_configurations(NAMESPACE), strict=True):
        await store.create(kind, configuration)
    return store


async def bundles(store: Store) -> list[str]:
    """Whom API servers trust, for each entry of both configurations."""
    found = []
    for kind in KINDS:
        configuration = await store.get(kind, "", CONFIGURATION_NAME)
        entries = [entry["clientConfig"] for entry in configuration["webhooks"]]
        found += [base64.b64decode(entry.get("caBundle", "")).decode() for entry in entries]
    return found


async def assert_trusted(store: Store, *replicas: Replica) -> None:
    """API servers accept what every replica shows."""
    for bundle in set(await bundles(store)):
        for replica in replicas:
            assert not replica.shown or vouches_for(bundle, replica.shown)


@cache
def vouches_for(bundle: str, shown: bytes) -> bool:
    certificate = read_certificate(shown)
    return any(is_signed_by(certificate, one) for one in read_certificates(bundle.encode()))


def scenario(test: Callable[..., Any]) -> Callable[[], None]:
    def run() -> None:
        async def whole() -> None:
            await test(await store_with_configurations(), Time())

        asyncio.run(whole())

    run.__name__ = test.__name__
    return run


@scenario
async def test_a_first_start_makes_one_and_tells_api_servers(store: Store, time: Time) -> None:
    replica = Replica(store, time)
    await replica.own.look()
    assert replica.readiness.ready
    assert "certificate: valid until 2031-01-01" in replica.readiness.text()
    (bundle,) = set(await bundles(store))
    secret = await store.get(SECRET, NAMESPACE, SECRET_NAME)
    assert secret["type"] == "kubernetes.io/tls"
    assert set(secret["data"]) == {"tls.crt", "tls.key", "ca.crt"}
    assert base64.b64decode(secret["data"]["ca.crt"]).decode() == bundle


def test_an_api_server_that_trusts_the_bundle_gets_through() -> None:
    async def run() -> None:
        store, time = await store_with_configurations(), Time()
        time.seconds = datetime.now(UTC).timestamp()
        replica, stranger = Replica(store, time), Replica(await store_with_configurations(), time)
        stranger.own._make = new_made
        await replica.own.look()
        await stranger.own.look()
        (bundle,) = set(await bundles(store))
        assert await replica.is_taken_by(bundle)
        assert not await stranger.is_taken_by(bundle)

    asyncio.run(run())


@scenario
async def test_replicas_that_start_at_once_share_one(store: Store, time: Time) -> None:
    replicas = [Replica(store, time) for _ in range(3)]
    for replica in replicas:
        replica.own._make = new_made
    await asyncio.gather(*(replica.own.look() for replica in replicas))
    assert len({replica.shown for replica in replicas}) == 1
    await assert_trusted(store, *replicas)


@scenario
async def test_it_is_renewed_while_replicas_run_and_always_trusted(
    store: Store, time: Time
) -> None:
    replicas = [Replica(store, time) for _ in range(2)]

    async def look() -> None:
        for replica in replicas:
            await replica.own.look()
            await assert_trusted(store, *replicas)

    await look()
    first = replicas[0].shown
    time.seconds = START + RENEWAL
    await look()
    assert {replica.shown for replica in replicas} == {first}
    assert "about to take its place" in replicas[0].readiness.text()
    for _ in range(int(SETTLED_AFTER.total_seconds() / LOOKED_AT_EVERY) + 1):
        time.seconds += LOOKED_AT_EVERY
        await look()
    (shown,) = {replica.shown for replica in replicas}
    assert shown != first
    assert len(read_certificates((await bundles(store))[0].encode())) == 2


@scenario
async def test_it_waits_until_api_servers_have_known_it_for_a_while(
    store: Store, time: Time
) -> None:
    replica = Replica(store, time)
    await replica.own.look()
    first = replica.shown
    time.seconds = START + RENEWAL
    replica.access.trouble = refusing("patch", MUTATING_WEBHOOK_CONFIGURATION, Unavailable("away"))
    for _ in range(200):
        time.seconds += LOOKED_AT_EVERY
        await replica.own.look()
    assert replica.shown == first
    assert not replica.readiness.ready
    replica.access.trouble = untroubled
    await replica.own.look()
    assert replica.shown == first, "it was written only now"
    time.seconds += KNOWN_AFTER
    await replica.own.look()
    assert replica.shown != first
    await assert_trusted(store, replica)


@scenario
async def test_what_somebody_writes_over_is_repaired(store: Store, time: Time) -> None:
    replica = Replica(store, time)
    await replica.own.look()
    before = await bundles(store)
    for kind, applied in zip(KINDS, webhook_configurations(NAMESPACE), strict=True):
        applied["webhooks"][0]["timeoutSeconds"] = 3
        await store.patch(kind, "", CONFIGURATION_NAME, applied)
    assert await bundles(store) != before
    await replica.own.look()
    assert await bundles(store) == before
    for kind in KINDS:
        configuration = await store.get(kind, "", CONFIGURATION_NAME)
        assert configuration["webhooks"][0]["timeoutSeconds"] == 3, "only the bundle is ours"


@pytest.mark.parametrize("spoilt", ["deleted", "emptied", "replaced by junk"])
def test_a_secret_that_was_lost_is_made_again_as_it_was(spoilt: str) -> None:
    async def run() -> None:
        store, time = await store_with_configurations(), Time()
        replica = Replica(store, time)
        await replica.own.look()
        before = (await store.get(SECRET, NAMESPACE, SECRET_NAME))["data"]
        if spoilt == "deleted":
            await store.delete(SECRET, NAMESPACE, SECRET_NAME)
        else:
            junk = None if spoilt == "emptied" else dict.fromkeys(before, "anVuaw==")
            await store.patch(SECRET, NAMESPACE, SECRET_NAME, {"data": junk})
        await replica.own.look()
        assert (await store.get(SECRET, NAMESPACE, SECRET_NAME))["data"] == before
        assert replica.readiness.ready

    asyncio.run(run())


@scenario
async def test_a_certificate_that_expired_while_nobody_ran_is_replaced(
    store: Store, time: Time
) -> None:
    await Replica(store, time).own.look()
    time.seconds = START + VALID.total_seconds() + 1
    replica = Replica(store, time)
    await replica.own.look()
    assert replica.readiness.ready
    assert read_certificate(replica.shown).not_valid_after_utc > datetime(2031, 6, 1, tzinfo=UTC)
    await assert_trusted(store, replica)


@scenario
async def test_without_configurations_nobody_asks_and_that_is_said(
    store: Store, time: Time
) -> None:
    await store.delete(MUTATING_WEBHOOK_CONFIGURATION, "", CONFIGURATION_NAME)
    replica = Replica(store, time)
    await replica.own.look()
    assert replica.readiness.ready
    assert "there is no MutatingWebhookConfiguration vcjob-webhook" in replica.readiness.text()
    elsewhere = {"webhooks": webhook_configurations("another")[1]["webhooks"]}
    await store.patch(VALIDATING_WEBHOOK_CONFIGURATION, "", CONFIGURATION_NAME, elsewhere)
    await replica.own.look()
    assert (
        "configurations: there is no MutatingWebhookConfiguration vcjob-webhook and nothing in the "
        "ValidatingWebhookConfiguration vcjob-webhook leads to the Service "
        f"{NAMESPACE}/{SERVICE}: API servers do not ask this webhook"
    ) in replica.readiness.text()


@pytest.mark.parametrize(
    ("verb", "kind", "condition"),
    [
        ("get", SECRET, "certificate"),
        ("create", SECRET, "certificate"),
        ("get", MUTATING_WEBHOOK_CONFIGURATION, "configurations"),
        ("patch", VALIDATING_WEBHOOK_CONFIGURATION, "configurations"),
    ],
)
def test_a_right_that_is_missing_is_told_and_looked_for_again(
    verb: str, kind: Kind, condition: str
) -> None:
    async def run() -> None:
        replica = Replica(await store_with_configurations(), Time())
        replica.access.trouble = refusing(verb, kind, Forbidden(f"may not {verb} {kind.plural}"))
        await replica.own.look()
        assert not replica.readiness.ready
        assert f"{condition}: may not {verb} {kind.plural}" in replica.readiness.text()
        replica.access.trouble = untroubled
        await replica.own.look()
        assert replica.readiness.ready

    asyncio.run(run())


@scenario
async def test_an_api_server_that_goes_away_leaves_the_webhook_ready(
    store: Store, time: Time
) -> None:
    replica = Replica(store, time)
    await replica.own.look()
    replica.access.trouble = refusing("get", SECRET, Unavailable("the server is away"))
    await replica.own.look()
    assert replica.readiness.ready
    assert "the server is away" in replica.readiness.text()
    time.seconds = START + VALID.total_seconds() + 1
    await replica.own.look()
    assert not replica.readiness.ready, "the certificate has expired meanwhile"


def test_without_a_descriptor_left_nothing_is_taken_for_spoilt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Connections of others may use up all of them; the next look finds all as it was."""

    def none_left(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    async def run() -> None:
        store, time = await store_with_configurations(), Time()
        await Replica(store, time).own.look()
        before = (await store.get(SECRET, NAMESPACE, SECRET_NAME))["data"]
        replica = Replica(store, time)
        rotation._sound.cache_clear()
        with monkeypatch.context() as patched:
            patched.setattr(os, "memfd_create", none_left)
            await replica.own.look()
            assert not replica.readiness.ready
            assert "certificate: it cannot be loaded: Too many" in replica.readiness.text()
        await replica.own.look()
        assert replica.readiness.ready
        assert (await store.get(SECRET, NAMESPACE, SECRET_NAME))["data"] == before

    asyncio.run(run())


def refusing(verb: str, kind: Kind, error: Exception) -> Callable[[str, Kind, bool], None]:
    def trouble(asked: str, about: Kind, done: bool) -> None:
        if (asked, about, done) == (verb, kind, False):
            raise error

    return trouble


@given(st.randoms(use_true_random=False))
@settings(max_examples=12, deadline=None)
def test_killed_at_any_moment_of_a_rotation_api_servers_always_trust_what_is_shown(
    numbers: random.Random,
) -> None:
    """Two replicas through two rotations: requests and answers get lost, and they are killed."""

    async def run() -> None:
        store, time = await store_with_configurations(), Time()

        def trouble(verb: str, kind: Kind, done: bool) -> None:
            if numbers.random() < 0.05:
                raise Killed if numbers.random() < 0.5 else Unavailable("lost")

        def started() -> Replica:
            replica = Replica(store, time)
            replica.access.trouble = trouble
            return replica

        replicas = [started(), started()]

        async def look_often() -> bytes:
            for _ in range(15):
                for place in numbers.sample(range(2), 2):
                    try:
                        await replicas[place].own.look()
                    except Killed:
                        replicas[place] = started()
                    if all(await bundles(store)):  # not before a first one was told of
                        await assert_trusted(store, *replicas)
                time.seconds += numbers.choice((10, 60, 120))
            for replica in replicas * 3:  # nobody is unlucky for ever
                replica.access.trouble = untroubled
                await replica.own.look()
                replica.access.trouble = trouble
                time.seconds += KNOWN_AFTER
            for replica in replicas:  # what one has done at last the other sees
                replica.access.trouble = untroubled
                await replica.own.look()
                replica.access.trouble = trouble
            await assert_trusted(store, *replicas)
            (shown,) = {replica.shown for replica in replicas}
            return shown

        shown = [await look_often()]
        for _ in range(2):
            time.seconds += RENEWAL
            await look_often()
            time.seconds += SETTLED_AFTER.total_seconds()
            shown.append(await look_often())
        assert len(set(shown)) == 3

    asyncio.run(run())


def untroubled(verb: str, kind: Kind, done: bool) -> None:
    pass


@scenario
async def test_it_is_looked_at_again_and_again(store: Store, time: Time) -> None:
    class Hours(Time):
        def __init__(self) -> None:
            super().__init__()
            self.over = asyncio.Event()

        async def sleep_until(self, when: float) -> None:
            assert when == self.seconds + LOOKED_AT_EVERY
            self.seconds += timedelta(hours=12).total_seconds()
            if self.seconds > START + RENEWAL + timedelta(days=2).total_seconds():
                self.over.set()
            await asyncio.sleep(0)

    hours = Hours()
    replica = Replica(store, hours)
    task = asyncio.create_task(replica.own.keep())
    await hours.over.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    second = read_certificate(replica.shown).not_valid_after_utc
    assert second > datetime.fromtimestamp(START, UTC) + VALID
