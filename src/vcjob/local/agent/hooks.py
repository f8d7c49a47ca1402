"""The postStart and preStop hooks of a container.

Source of the rules: Kubernetes documentation, "Container Lifecycle Hooks".
"""

import asyncio
from typing import Any

from vcjob.api.types import Object
from vcjob.local.agent.probes import Prober
from vcjob.local.node.messages import ContainerExited

_ASKING_SECONDS = 60.0
"""How long the answer to a request may take when no grace period bounds it."""


def hook_of(container: Object, name: str) -> Object:
    """The hook of this name, empty if the container has none."""
    hook: Object = (container.get("lifecycle") or {}).get(name) or {}
    return hook


async def run_hook(
    container: Object,
    name: str,
    prober: Prober,
    exited: "asyncio.Future[ContainerExited]",
    seconds: float | None,
) -> str:
    """Run a hook for at most ``seconds`` while the container lives; returns what went wrong."""
    hook = hook_of(container, name)
    if sleep := hook.get("sleep"):
        wanted = float(sleep.get("seconds") or 0)
        timeout = wanted if seconds is None else min(wanted, seconds)
        await asyncio.wait([exited], timeout=timeout)
    elif hook:
        if seconds is None and not hook.get("exec"):
            seconds = _ASKING_SECONDS
        asking = asyncio.create_task(prober.answer(hook, seconds))
        try:
            # A program inside ends with its container, and is heard of first.
            waited: list[asyncio.Future[Any]] = [asking]
            if not hook.get("exec"):
                waited.append(exited)
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if asking.done() and not asking.result().good:
                return f"{name} hook: {asking.result().message}"
        finally:
            asking.cancel()
    return ""
