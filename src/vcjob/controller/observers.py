"""Whoever measures the controller: what it tells them."""

from collections.abc import Callable

import msgspec

from vcjob.api.types import Job
from vcjob.core.observed import Observed


class Observers(msgspec.Struct, frozen=True):
    """What is called while the controller works; nothing of it may raise or take long.

    ``passed``: a Job was looked at, which took so many seconds. ``seen``: a Job and its pods as
    they are after that look. ``forgotten``: the UID of a Job that is gone.
    """

    passed: Callable[[float], None] = lambda seconds: None
    seen: Callable[[Job, Observed], None] = lambda job, pods: None
    forgotten: Callable[[str], None] = lambda uid: None
