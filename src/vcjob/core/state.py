"""What must outlive a crash of the controller, kept in the Job's status.

It is compact JSON in ``status.controlledResources["vcjob.dev/state"]``, a map of strings that
Volcano's CRD keeps too. Phase, version and number of retries are status fields of their own.
"""

from collections.abc import Iterable

import msgspec

from vcjob.api.names import STATE_KEY
from vcjob.api.types import Job
from vcjob.core.indices import NO_INDICES, IndexSet

FORMAT = 1


class Timer(msgspec.Struct, frozen=True, rename={"event": "e", "action": "a", "due": "d",
            "task": "t", "indices": "i", "exit_code": "x"}, omit_defaults=True):  # fmt: skip
    """An action that is to be done at ``due`` (seconds since 1970) because of an event.

    The event happened to the pods of ``task`` at ``indices``; ``task`` is empty if it happened to
    no pod.
    """

    event: str
    action: str
    due: float
    task: str = ""
    indices: str = ""
    exit_code: int = 0


class Target(msgspec.Struct, frozen=True, rename={"task": "t", "indices": "i", "retry": "r"}):
    """Pods of a restart that is under way: those at ``indices`` made before retry ``retry``."""

    task: str
    indices: str
    retry: int


class State(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    tag_field="v",
    tag=FORMAT,
    rename={"alive": "l", "done": "d", "keep": "k", "targets": "t", "timers": "w",
            "commands": "c", "suspended": "s", "group": "g", "resumed": "u", "refused": "r",
            "version": "n", "retry": "m", "uncounted": "f", "end": "e"},
):  # fmt: skip
    """The state of one Job.

    ``alive``: per task the indices that had a pod that had not ended; one that is found missing has
    vanished. ``done``: indices that have Succeeded, whose pod may be cleaned up. ``keep``: whether
    the last kill of the whole Job keeps pods that have ended. ``targets``: restarts under way of
    some pods. ``timers``: actions to come. ``commands``: UIDs of Commands that were handled and may
    still exist. ``suspended``: the annotation's value when it was last acted upon. ``group``: UID
    of the PodGroup that has to go before a new one is made. ``resumed``: whether the Job is
    Restarting because of a resume. ``refused``: what lasts and asks for a restart of pods that
    there are not, and was told. ``uncounted``: the restarts that use up none of ``maxRetry``, each
    by the ``retryCount`` that it led to. ``end``: how many characters at the end of the status'
    message tell what the Job waits for, and not why. ``version`` and ``retry`` are those of the
    status that it was written with.
    """

    alive: dict[str, str] = {}
    done: dict[str, str] = {}
    keep: bool = False
    targets: tuple[Target, ...] = ()
    timers: tuple[Timer, ...] = ()
    commands: tuple[str, ...] = ()
    suspended: bool = False
    group: str = ""
    resumed: bool = False
    refused: tuple[str, ...] = ()
    uncounted: str = ""
    end: int = 0
    version: int = 0
    retry: int = 0

    def done_of(self, task: str) -> IndexSet:
        """Indices of a task that have Succeeded."""
        return _set(self.done.get(task))

    def alive_of(self, task: str) -> IndexSet:
        """Indices of a task that had a living pod."""
        return _set(self.alive.get(task))

    @property
    def uncounted_retries(self) -> IndexSet:
        """The restarts that use up none of ``maxRetry``, by the retryCount that each led to."""
        return _set(self.uncounted)


def without_places(timers: Iterable[Timer], task: str, indices: IndexSet) -> tuple[Timer, ...]:
    """The timers as they go on for all other pods than those of ``task`` at ``indices``."""
    kept: list[Timer] = []
    for timer in timers:
        if timer.task != task:
            kept.append(timer)
        elif rest := IndexSet.parse(timer.indices) - indices:
            kept.append(msgspec.structs.replace(timer, indices=str(rest)))
    return tuple(kept)


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(State).decode


def state_of(job: Job) -> State:
    """The state in a Job's status; an empty one if there is none or it cannot be read.

    What cannot be read was not written by us, and what was written for another version or retry is
    no longer true: Volcano's controller has decided since. Pods, phase, version and retries still
    tell enough to go on from there. Pods of an earlier version that have ended stay then: a kill
    of Volcano's that was to take them with it has marked them.
    """
    status = job.status
    unknown = State(keep=status.version > 0)
    text = status.controlled_resources.get(STATE_KEY)
    if not text:
        return unknown
    try:
        state = _decode(text)
        for ranges in (*state.alive.values(), *state.done.values()):
            IndexSet.parse(ranges)
        IndexSet.parse(state.uncounted)
        for target in state.targets:
            IndexSet.parse(target.indices)
        for timer in state.timers:
            IndexSet.parse(timer.indices)
    except (msgspec.MsgspecError, ValueError):
        return unknown
    if (state.version, state.retry) != (status.version, status.retry_count):
        return msgspec.structs.replace(
            unknown,
            commands=state.commands,
            suspended=state.suspended,
            uncounted=state.uncounted,
            end=state.end,
        )
    return state


def encode_state(state: State) -> str:
    """The text that ``state_of`` reads."""
    return _encode(state).decode()


def differ_in_pods_only(one: str, other: str) -> bool:
    """Whether two encoded states tell the same course, of pods that have come or ended since."""
    try:
        first, second = _decode(one), _decode(other)
    except msgspec.MsgspecError:
        return False
    return _course(first) == _course(second)


def _course(state: State) -> State:
    return msgspec.structs.replace(state, alive={}, done={}, end=0)


def _set(text: str | None) -> IndexSet:
    return IndexSet.parse(text) if text else NO_INDICES
