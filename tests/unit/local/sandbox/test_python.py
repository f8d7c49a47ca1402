"""Which Python pods see."""

import sys
from pathlib import Path

import pytest

from vcjob.local.sandbox.python import PythonNotFound, find_python, read_python


@pytest.mark.parametrize("inside", ["", "bin/python"])
def test_an_environment_is_named_by_its_directory_or_its_interpreter(
    tmp_path: Path, inside: str
) -> None:
    interpreter = tmp_path / "bin" / "python"
    interpreter.parent.mkdir()
    interpreter.symlink_to(sys.executable)
    found = find_python(str(tmp_path / inside), {})
    assert found == str(interpreter)
    assert read_python(found, "/home/nobody").executable


def test_what_is_chosen_comes_before_what_is_active_and_that_before_ours(tmp_path: Path) -> None:
    active = tmp_path / "bin" / "python"
    active.parent.mkdir()
    active.symlink_to(sys.executable)
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        assert find_python("", {variable: str(tmp_path)}) == str(active)
        assert find_python("/other/python", {variable: str(tmp_path)}) == "/other/python"
        assert find_python("", {variable: str(tmp_path / "gone")}) == sys.executable


def test_a_directory_without_a_python_is_told_with_the_option_that_helps(tmp_path: Path) -> None:
    with pytest.raises(PythonNotFound, match=r"bin/python is no Python that runs here.*--python"):
        read_python(find_python(str(tmp_path), {}), "/home/nobody")
