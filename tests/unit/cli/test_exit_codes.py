"""Exit codes of a run."""

import pytest

from vcjob.cli.exit_codes import of_phases


@pytest.mark.parametrize(
    ("phases", "code"),
    [
        (["Completed"], 0),
        (["Failed"], 1),
        (["Terminated"], 5),
        (["Aborted"], 6),
        (["Completed", "Aborted"], 6),
        (["Aborted", "Terminated", "Completed"], 5),
        (["Terminated", "Failed", "Aborted"], 1),
        (["Running"], 1),
        ([], 0),
    ],
)
def test_a_run_ends_with_the_worst_of_its_jobs(phases: list[str], code: int) -> None:
    assert of_phases(phases) == code
