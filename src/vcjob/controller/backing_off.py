"""How long to wait before the next try: the longer the more have failed, and never all at once."""

import random

_MOST_DOUBLINGS = 20


def pause_after(failures: int, jitter: random.Random, *, first: float, longest: float) -> float:
    """Seconds to wait after so many failures in a row (at least 1).

    ``first`` doubles with each further one up to ``longest``; up to a quarter is taken off at
    random, so that those who failed together do not come back together.
    """
    doubled: float = first * 2 ** min(max(failures, 1) - 1, _MOST_DOUBLINGS)
    return min(doubled, longest) * (1 - jitter.random() / 4)
