"""What the exit code of ``vcjob`` means, and which one a run with several Jobs ends with."""

from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every ``vcjob`` command (README, section "Exit codes")."""

    COMPLETED = 0
    FAILED = 1
    WRONG_USAGE = 2
    MANIFEST_REFUSED = 3
    MACHINE_CANNOT = 4
    TERMINATED = 5
    ABORTED = 6
    INTERRUPTED = 130


_OF_PHASE = {
    "Completed": ExitCode.COMPLETED,
    "Failed": ExitCode.FAILED,
    "Terminated": ExitCode.TERMINATED,
    "Aborted": ExitCode.ABORTED,
}

# From bad to good. A Job that failed matters more than one that was stopped on purpose.
_WORST_FIRST = (ExitCode.FAILED, ExitCode.TERMINATED, ExitCode.ABORTED, ExitCode.COMPLETED)


def of_phases(phases: Iterable[str]) -> ExitCode:
    """The exit code for Jobs that ended in these phases: the worst of them.

    A phase that is not an end (the engine stopped under the Job) counts as Failed.
    """
    return worst(_OF_PHASE.get(phase, ExitCode.FAILED) for phase in phases)


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """The exit code that counts most of several."""
    given = set(codes)
    return next((code for code in _WORST_FIRST if code in given), ExitCode.COMPLETED)
