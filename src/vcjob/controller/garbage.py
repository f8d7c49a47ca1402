"""How often Python looks for garbage while there are very many objects that all live.

Each pod is some hundred small objects. To go through them over and over costs the more the more
pods there are: measured, a tenth of the CPU of a Job of 10,000 pods (``bench/controller.py``). But
what is looked for too rarely adds up: with thresholds of 50,000, 20 and 100 the old generations
were never looked through, and each small Job that came and went left 3 kB behind.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_RARELY = (10_000, 5, 5)
"""Thresholds of the three generations, see ``gc.set_threshold``."""


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Inside, cyclic garbage is looked for less often than usual."""
    before = gc.get_threshold()
    gc.set_threshold(*_RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)
