"""The root of every exception that vcjob raises on purpose."""


class VcjobError(Exception):
    """Something a user can act on. ``str()`` is one clear sentence, ready to be shown."""


def first_of(error: BaseException) -> BaseException:
    """What several tasks at once failed with: the first of it; one sentence is enough."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
