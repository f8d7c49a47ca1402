"""Events: one object for what is said again and again."""

import asyncio
import logging
import time
from typing import Any

import pytest
from faults import Faulty

from vcjob.api.kinds import EVENT
from vcjob.api.validation import dns_1123_subdomain
from vcjob.controller.cluster import Forbidden
from vcjob.controller.recorder import record_event
from vcjob.core.draft import Told
from vcjob.core.times import timestamp
from vcjob.local.store import Store

JOB: dict[str, Any] = {"metadata": {"name": "j", "namespace": "default", "uid": "u"}}
TOLD = Told("Warning", "Quota", "used up")


def recorded(*said: tuple[dict[str, Any], Told, float]) -> list[dict[str, Any]]:
    async def story() -> list[dict[str, Any]]:
        store = Store(time.time)
        for job, told, now in said:
            await record_event(store, job, told, now)
        return list((await store.list(EVENT)).items)

    return asyncio.run(story())


def test_what_is_said_again_is_counted_with_the_time_of_the_first_and_the_last() -> None:
    (event,) = recorded((JOB, TOLD, 100.0), (JOB, TOLD, 200.0), (JOB, TOLD, 300.0))
    assert event["count"] == 3
    assert (event["firstTimestamp"], event["lastTimestamp"]) == (timestamp(100), timestamp(300))
    assert event["involvedObject"]["uid"] == "u"
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "Quota", "used up")


def test_other_words_and_another_job_of_the_same_name_are_other_events() -> None:
    namesake = {"metadata": {**JOB["metadata"], "uid": "v"}}
    other = Told("Warning", "Quota", "used up again")
    events = recorded((JOB, TOLD, 1.0), (JOB, other, 1.0), (namesake, TOLD, 1.0))
    assert [event["count"] for event in events] == [1, 1, 1]


def test_a_long_message_is_cut_to_what_servers_take() -> None:
    (event,) = recorded((JOB, Told("Normal", "R", "x" * 5000), 1.0))
    assert len(event["message"]) == 1024


@pytest.mark.parametrize("name", ["q" * 253, "q" * 235 + "." + "q" * 17])
def test_about_what_has_the_longest_name_an_event_has_a_name_that_servers_take(name: str) -> None:
    (event,) = recorded(({"metadata": {"name": name, "uid": "u"}}, TOLD, 1.0))
    assert not dns_1123_subdomain(event["metadata"]["name"])
    assert event["involvedObject"]["name"] == name


def test_an_event_that_cannot_be_written_is_logged_and_changes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Refusing(Faulty):
        async def create(self, kind: Any, obj: Any, **more: Any) -> Any:
            raise Forbidden("no right to create events")

    with caplog.at_level(logging.WARNING):
        asyncio.run(record_event(Refusing(Store(time.time)), JOB, TOLD, 1.0))
    assert "default/j: no right to create events" in caplog.text
