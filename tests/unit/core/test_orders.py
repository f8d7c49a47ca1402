"""Commands, and the annotation that suspends: lifecycle.md section 8."""

import pytest
from drafts import draft

from vcjob.api.types import Object
from vcjob.core.orders import obey_annotation, obey_commands
from vcjob.core.state import State


def command(name: str, action: str, at: str) -> Object:
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": at}
    return {"metadata": metadata, "action": action}


def test_commands_are_obeyed_oldest_first_one_with_an_effect_at_a_time_and_once() -> None:
    commands = [
        command("b", "ResumeJob", "2026-01-01T00:00:02Z"),
        command("a", "AbortJob", "2026-01-01T00:00:01Z"),
    ]
    one = draft([])
    assert obey_commands(one, commands)
    assert (one.phase, one.state.commands) == ("Aborting", ("uid-a",))
    assert obey_commands(one, commands)
    assert (one.phase, one.state.commands) == ("Restarting", ("uid-a", "uid-b"))
    assert not obey_commands(one, commands)
    assert not obey_commands(one, []), "what is gone need not be remembered"
    assert one.state.commands == ()


def test_an_unknown_command_does_nothing_but_say_so() -> None:
    one = draft([])
    assert not obey_commands(one, [command("odd", "Explode", "")])
    assert one.phase == "Running"
    assert "Explode" in one.told[0].message


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
    ],
)
def test_the_annotation_is_acted_upon_when_it_changes(
    value: str | None, before: bool, phase: str, then: str
) -> None:
    annotations = {} if value is None else {"vcjob.dev/suspend": value}
    one = draft([], phase=phase, state=State(suspended=before), annotations=annotations)
    obey_annotation(one)
    assert one.phase == then
