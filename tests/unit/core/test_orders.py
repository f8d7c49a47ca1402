"""Commands, and the annotation that suspends: lifecycle.md section 8."""

import pytest
from drafts import draft

from vcjob.api.names import SUSPEND
from vcjob.api.types import Object
from vcjob.core.orders import obey
from vcjob.core.state import State


def command(name: str, action: str, at: str = "", version: int = 0) -> Object:
    metadata: Object = {"name": name, "uid": f"uid-{name}", "creationTimestamp": at}
    if version:
        metadata["resourceVersion"] = str(version)
    return {"metadata": metadata, "action": action}


def test_commands_are_obeyed_oldest_first_one_with_an_effect_at_a_time_and_once() -> None:
    commands = [
        command("b", "ResumeJob", "2026-01-01T00:00:02Z"),
        command("a", "AbortJob", "2026-01-01T00:00:01Z"),
    ]
    one = draft([])
    obey(one, commands)
    assert (one.phase, one.state.commands) == ("Aborting", ("uid-a",))
    obey(one, commands)
    assert (one.phase, one.state.commands) == ("Restarting", ("uid-a", "uid-b"))
    obey(one, commands)
    assert (one.phase, len(one.told)) == ("Restarting", 4)
    obey(one, [])
    assert one.state.commands == (), "what is gone need not be remembered"


def test_of_commands_of_the_same_second_the_first_to_be_stored_is_the_oldest() -> None:
    commands = [command("a", "ResumeJob", version=10), command("b", "AbortJob", version=9)]
    one = draft([])
    obey(one, commands)
    assert one.state.commands == ("uid-b",)
    obey(one, commands)
    assert one.phase == "Restarting"


@pytest.mark.parametrize(
    ("annotation", "action", "version", "phases"),
    [
        ("true", "ResumeJob", 6, ["Aborting", "Restarting"]),  # the Command is the later
        ("true", "ResumeJob", 4, ["Aborting", "Aborting"]),
        (None, "AbortJob", 6, ["Restarting", "Aborting"]),
        (None, "AbortJob", 4, ["Restarting", "Restarting"]),
    ],
)
def test_of_a_command_and_the_annotation_the_later_one_wins_though_both_are_seen_at_once(
    annotation: str | None, action: str, version: int, phases: list[str]
) -> None:
    """The Job was last changed by version 5."""
    phase = "Running" if annotation else "Aborted"
    one = draft(
        [],
        phase=phase,
        state=State(suspended=not annotation),
        annotations={SUSPEND: annotation} if annotation else {},
        version=5,
    )
    seen = []
    for _ in phases:
        obey(one, [command("a", action, version=version)])
        seen.append(one.phase)
    assert seen == phases


def test_a_command_that_has_no_effect_says_once_why() -> None:
    one = draft([])
    obey(one, [command("a", "RestartTask", version=1), command("b", "ResumeJob", version=2)])
    assert [told.message for told in one.told] == [
        "Command a asks for RestartTask",
        "a Command asked for RestartTask, but this concerns no pod that RestartTask could restart; "
        "RestartJob restarts all",
        "Command b asks for ResumeJob",
        "ResumeJob changes nothing in phase Running",
    ]


def test_an_unknown_command_does_nothing_but_say_so() -> None:
    one = draft([])
    obey(one, [command("odd", "Explode")])
    assert one.phase == "Running"
    message = "Command odd asks for unknown action 'Explode': there are AbortJob, RestartJob, "
    assert one.told[0].message.startswith(message)


@pytest.mark.parametrize(
    ("value", "before", "phase", "then"),
    [
        ("true", False, "Running", "Aborting"),
        ("true", True, "Running", "Running"),  # it was acted upon; a Command resumed since
        ("True", False, "Pending", "Aborting"),
        (None, True, "Aborted", "Restarting"),
        ("false", True, "Aborting", "Restarting"),
        (None, False, "Aborted", "Aborted"),  # a Command suspended it
        ("true", False, "Completed", "Completed"),
        ("treu", True, "Aborted", "Aborted"),
        ("treu", False, "Running", "Running"),
    ],
)
def test_the_annotation_is_acted_upon_when_it_changes(
    value: str | None, before: bool, phase: str, then: str
) -> None:
    annotations = {} if value is None else {SUSPEND: value}
    one = draft([], phase=phase, state=State(suspended=before), annotations=annotations)
    obey(one, [])
    assert one.phase == then
