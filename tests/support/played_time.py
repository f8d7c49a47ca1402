"""An event loop whose time stands still while there is something to do, and then jumps."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):
    """Instead of waiting for a time to come, makes it come. (Use no sockets: they would wait.)"""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout:
            self.now += timeout
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def play(story: Coroutine[Any, Any, T]) -> T:
    """Run a story in such a loop, from time 0."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(story)
