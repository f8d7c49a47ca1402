"""What the READMEs promise: commands that CI really runs, and two languages that say the same."""

import re
import subprocess
from pathlib import Path

import pytest

from vcjob.cli.exit_codes import ExitCode

ROOT = Path(__file__).parents[3]
ENGLISH = (ROOT / "README.md").read_text()
CHINESE = (ROOT / "README.zh-CN.md").read_text()
BOTH = pytest.mark.parametrize("readme", [ENGLISH, CHINESE], ids=["English", "Chinese"])


def code_blocks(text: str, language: str = r"\w*") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def prose_of(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def heading_levels(text: str) -> list[int]:
    return [len(marks) for marks in re.findall(r"^(#+) ", prose_of(text), re.M)]


def codes_of(text: str) -> list[int]:
    return [int(code) for code in re.findall(r"^\| (\d+) \|", text, re.M)]


@pytest.mark.parametrize("which", ["run", "test"])
def test_ci_runs_the_commands_of_the_readme(which: str) -> None:
    commands = dict(zip(["run", "test"], code_blocks(ENGLISH, "sh"), strict=True))
    function = re.search(rf"^readme_{which}_command\(\) \{{\n(.*?)^\}}", ci(), re.M | re.S)
    assert function is not None
    assert function[1].strip() == commands[which].strip()


def ci() -> str:
    return (ROOT / ".ci" / "run").read_text()


def test_ci_script_is_valid_shell_and_executable() -> None:
    path = ROOT / ".ci" / "run"
    assert path.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", str(path)], check=True)


def test_commands_of_the_readme_are_one_line_each() -> None:
    run_command, test_command = code_blocks(ENGLISH, "sh")
    assert run_command.count("\n") == test_command.count("\n") == 1


def test_run_command_names_files_that_exist() -> None:
    run_command = code_blocks(ENGLISH, "sh")[0]
    arguments = run_command.partition("vcjob run ")[2].split()
    manifest, flag, volume = arguments
    assert flag == "-v"
    assert (ROOT / manifest).is_file()
    directory, _, target = volume.partition(":")
    assert (ROOT / directory / "dist_mnist.py").is_file()
    # The manifest starts the program where the command shows it.
    assert f"python {target}/dist_mnist.py" in (ROOT / manifest).read_text()


def test_both_languages_have_the_same_code() -> None:
    assert code_blocks(ENGLISH) == code_blocks(CHINESE)


def test_both_languages_have_the_same_headings() -> None:
    assert heading_levels(ENGLISH) == heading_levels(CHINESE)


def test_both_languages_link_to_the_same_places() -> None:
    links = [
        {link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("README")}
        for text in (ENGLISH, CHINESE)
    ]
    assert links[0] == links[1]


def test_both_languages_name_the_same_commands_and_plugins() -> None:
    """Inline code is not translated."""
    english, chinese = (set(re.findall(r"`[^`\n]+`", prose_of(t))) for t in (ENGLISH, CHINESE))
    assert english == chinese


@BOTH
def test_exit_codes_are_those_of_the_command(readme: str) -> None:
    assert codes_of(readme) == sorted(ExitCode)
