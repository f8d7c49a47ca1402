"""The root of every exception that vcjob raises on purpose."""


class VcjobError(Exception):
    """Something a user can act on. ``str()`` is one clear sentence, ready to be shown."""
