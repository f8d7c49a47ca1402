"""For all tests: how long something takes on a busy machine fails no test."""

from hypothesis import settings

settings.register_profile("vcjob", deadline=None)
settings.load_profile("vcjob")
