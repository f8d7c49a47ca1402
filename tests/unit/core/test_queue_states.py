"""Whether a Queue is open, by what is asked, what is above it and what is in it."""

from typing import Any

import pytest

from vcjob.api.names import CLOSED_BY_PARENT
from vcjob.api.types import Object
from vcjob.core.queue_states import decide, status_patch


def queue(state: str = "", *, marked: bool = False, name: str = "q") -> Object:
    metadata: Object = {"name": name, "uid": f"uid-{name}"}
    if marked:
        metadata["annotations"] = {CLOSED_BY_PARENT: "true"}
    return {"metadata": metadata, "status": {"state": state} if state else {}}


def command(action: str = "", **fields: Any) -> Object:
    return {"metadata": {"name": "c"}, "action": action, **fields}


OPEN, CLOSE = "OpenQueue", "CloseQueue"


@pytest.mark.parametrize(
    ("state", "marked", "above", "groups", "action", "then", "is_marked"),
    [
        # Nothing is asked: what is in it decides between Closing and Closed.
        ("", False, "Open", 3, "", "Open", False),
        ("Open", False, None, 3, "", "Open", False),
        ("Closed", False, "Open", 1, "", "Closing", False),
        ("Closing", False, "Open", 1, "", "Closing", False),
        ("Closing", False, "Open", 0, "", "Closed", False),
        ("Unknown", False, "Open", 0, "", "Unknown", False),
        # Closed with the one above it, and opened with it, but only then.
        ("Open", False, "Closing", 0, "", "Closed", True),
        ("", False, "Closed", 2, "", "Closing", True),
        ("Closed", True, "Closing", 0, "", "Closed", True),
        ("Closing", True, "Open", 1, "", "Open", False),
        ("Closed", False, "Open", 0, "", "Closed", False),
        ("Closed", True, None, 0, "", "Open", False),
        ("Open", True, "Open", 0, "", "Open", False),
        # Commands.
        ("Open", False, "Open", 0, CLOSE, "Closed", False),
        ("", False, "Open", 2, CLOSE, "Closing", False),
        ("Unknown", False, "Open", 0, CLOSE, "Closed", False),
        ("Closed", True, "Closed", 0, CLOSE, "Closed", False),
        ("Closing", False, "Open", 0, CLOSE, "Closed", False),
        ("Closed", False, "Open", 0, OPEN, "Open", False),
        ("Closing", False, None, 4, OPEN, "Open", False),
        ("Unknown", False, "Open", 4, OPEN, "Open", False),
        ("Closed", True, "Closing", 0, OPEN, "Closed", True),
        ("Closed", False, "Closed", 0, OPEN, "Closed", False),
        ("Open", False, "Open", 0, "AbortJob", "Open", False),
    ],
)
def test_states(
    state: str, marked: bool, above: str | None, groups: int, action: str, then: str,
    is_marked: bool,
) -> None:  # fmt: skip
    parent = queue(above, name="above") if above else None
    asked = command(action) if action else None
    decision = decide(queue(state, marked=marked), parent, groups, asked)
    assert (decision.state, decision.is_marked) == (then, is_marked)
    # What was decided stands until something else happens.
    again = decide(queue(then, marked=is_marked), parent, groups)
    assert (again.state, again.is_marked, again.told) == (then, is_marked, ())


@pytest.mark.parametrize(
    ("name", "above", "asked", "told"),
    [
        ("q", "Open", command(CLOSE, reason="rest"), "Command c asks for CloseQueue: rest"),
        ("q", "Closed", command(OPEN), "asks for OpenQueue, but the queue above it, above, is "
                                       "Closed: open that first"),
        ("root", None, command(CLOSE), "the queue root is above all others"),
        ("q", None, command("Close"), "asks for Close; queues know OpenQueue and CloseQueue"),
        ("q", None, command(), "asks for nothing; queues know"),
        ("q", None, command(CLOSE, target={"uid": "old"}), "of an earlier queue of this name"),
    ],
)  # fmt: skip
def test_what_becomes_of_a_command_is_told(
    name: str, above: str | None, asked: Object, told: str
) -> None:
    parent = queue(above, name="above") if above else None
    decision = decide(queue("Open", name=name), parent, 0, asked)
    assert told in decision.told[0].message
    is_obeyed = decision.told[0].type == "Normal"
    assert is_obeyed or decision.state == ("Closed" if above == "Closed" else "Open")


def test_of_a_status_only_what_is_not_so_is_written() -> None:
    there = {"status": {"state": "Open", "running": 2, "pending": 1, "allocated": {"cpu": "1"}}}
    phases = {"Running": 2, "Inqueue": 1}
    assert status_patch(there, "Open", phases) == {"pending": 0, "inqueue": 1}
    assert status_patch(there, "Open", {"Running": 2, "Pending": 1}) == {}
    assert status_patch(there, "Closing", {"Running": 2, "Pending": 1}) == {"state": "Closing"}


@pytest.mark.parametrize("status", [{}, {"running": 1}, {"allocated": None}])
def test_a_status_that_is_written_has_what_volcanos_definition_requires(status: Object) -> None:
    assert status_patch({"status": status}, "Open", {})["allocated"] == {}
