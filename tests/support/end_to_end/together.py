"""Stories of several tests beside each other, as Jobs of many users are; that also saves time."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from end_to_end.target import Target
from end_to_end.world import World

T = TypeVar("T")
_AT_THE_SAME_TIME = 16


class Failed(Exception):
    """A story that did not come to its end; the text tells why."""


class Told(dict[str, T | Failed]):
    """What the stories returned, by name."""

    def of(self, name: str) -> T:
        """What a story returned; raises Failed."""
        found = self[name]
        if isinstance(found, Failed):
            raise found
        return found


def tell_together(
    request: pytest.FixtureRequest,
    target: Target,
    story: Callable[[World, str], Awaitable[T]],
    obstacle: Callable[[str, Target], str] = lambda name, target: "",
    *,
    runs_pods: bool = True,
) -> Told[T]:
    """Tell the story of each test of the file that is asked for and has a parameter ``name``.

    Those with an obstacle are left out: their tests skip. Where stories ``runs_pods``, all do on a
    cluster whose nodes are somebody else's.
    """
    if runs_pods:
        target.require_nodes()
    here = [item for item in request.session.items if item.path == request.path]
    parameters = [getattr(item, "callspec", None) for item in here]
    names = [one.params["name"] for one in parameters if one and "name" in one.params]
    turns = asyncio.Semaphore(_AT_THE_SAME_TIME)

    async def tell(name: str) -> T | Failed:
        async with turns:
            try:
                return await target.tell(lambda world: story(world, name))
            except Exception:
                return Failed(traceback.format_exc())

    async def tell_all() -> Told[T]:
        tellable = [name for name in names if not obstacle(name, target)]
        found = await asyncio.gather(*map(tell, tellable))
        return Told(zip(tellable, found, strict=True))

    return asyncio.run(tell_all())
