"""A full disk passes: what sets up a pod or container waits and tries again, as kubelet does.

To end the pod for it would end Jobs for something that is over when somebody has made room.
"""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from typing import TypeVar

_AGAIN_SECONDS = 2.0
_FULL = (errno.ENOSPC, errno.EDQUOT)

_Result = TypeVar("_Result")


async def with_room(
    work: Callable[[], Awaitable[_Result]], tell: Callable[[str], Awaitable[None]]
) -> _Result:
    """Do the work, again and again as long as the disk is full; ``tell`` hears what is the matter.

    ``work`` can be begun anew at any point. Raises what it raises for other reasons.
    """
    told = ""
    while True:
        try:
            return await work()
        except Exception as error:
            if not _is_full(error):
                raise
            message = str(error)
        if message != told:
            told = message
            await tell(message)
        await asyncio.sleep(_AGAIN_SECONDS)


def _is_full(error: BaseException) -> bool:
    """Whether a full disk is behind an error, or behind what it was raised from."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in _FULL:
            return True
        cause = cause.__cause__
    return False
