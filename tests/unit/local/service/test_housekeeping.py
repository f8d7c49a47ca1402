"""Events do not gather for ever."""

import asyncio

from vcjob.api.kinds import CONFIG_MAP, EVENT
from vcjob.core.times import timestamp
from vcjob.local.service.housekeeping import EVENTS_KEPT_SECONDS, remove_old_events
from vcjob.local.store import Store

NOW = 1_700_000_000.0


def test_events_go_a_day_after_they_were_told_last_and_nothing_else_does() -> None:
    async def story() -> None:
        made = NOW - EVENTS_KEPT_SECONDS - 1
        store = Store(lambda: made)
        await store.create(CONFIG_MAP, {"metadata": {"name": "old"}})
        old, recent = timestamp(made), timestamp(NOW)
        for name, fields in {
            "old": {"lastTimestamp": old},
            "bare": {},
            "repeated": {"firstTimestamp": old, "lastTimestamp": recent},
            "series": {"eventTime": old, "series": {"lastObservedTime": recent}},
            "null": {"lastTimestamp": None, "eventTime": recent},
        }.items():
            await store.create(EVENT, {"metadata": {"name": name}, **fields})
        await remove_old_events(store, NOW)
        left = {event["metadata"]["name"] for event in (await store.list(EVENT)).items}
        assert left == {"repeated", "series", "null"}
        assert (await store.list(CONFIG_MAP)).items

    asyncio.run(story())
