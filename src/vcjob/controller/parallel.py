"""Many calls of one kind, some at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

T = TypeVar("T")


async def for_each(
    items: Collection[T], call: Callable[[T], Awaitable[None]], *, at_once: int
) -> list[Exception]:
    """Call for each item, ``at_once`` calls at a time; returns what was raised.

    A failed call does not keep the others from being made.
    """
    rest = iter(items)
    failures: list[Exception] = []

    async def work() -> None:
        for item in rest:
            try:
                await call(item)
            except Exception as error:  # the caller decides what it means
                failures.append(error)
            await asyncio.sleep(0)  # a cluster that never waits must not keep others waiting

    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_once, len(items))):
            group.create_task(work())
    return failures
