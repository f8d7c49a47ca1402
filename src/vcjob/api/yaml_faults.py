"""What can be wrong with YAML text, and what helps."""

import msgspec
import yaml

from vcjob.api.errors import VcjobError


class YamlFault(msgspec.Struct, frozen=True):
    """Something wrong with the text that leaves the document readable (a key given twice)."""

    message: str
    hint: str
    line: int
    column: int


class UnreadableYaml(VcjobError):
    """The document ends here: its text is not YAML, or passes a limit."""

    def __init__(self, message: str, hint: str, line: int, column: int) -> None:
        super().__init__(message)
        self.hint = hint
        self.line = line
        self.column = column


_NO_TABS = "indent with spaces: YAML does not take tabs"
# What the parser says, and what helps.
_ADVICE = (
    (
        "mapping values are not allowed",
        "put a text that contains ': ' in quotes; if the line is a key, indent it like its "
        "neighbours",
    ),
    (
        "did not find expected key",
        "all keys of one object start in the same column; check the indentation, and quote texts "
        "that begin with a special character",
    ),
    (
        "did not find expected '-' indicator",
        "all items of one list start in the same column; check the indentation",
    ),
    ("could not find expected ':'", "a key must be followed by ': ' in the same line"),
    ("block sequence entries are not allowed", "begin the list on a line of its own"),
    ("unexpected end of stream", "a quote or bracket is opened and not closed"),
    ("nesting depth", "no object of the Kubernetes API is nested so deep; check the brackets"),
    ("document indicator", "a quote is opened and not closed"),
    ("alphabetic or numeric character", "put texts that begin with * or & in quotes"),
    ("cannot start any token", "put texts that begin with @, ` or % in quotes"),
    ("expected ',' or", "a comma or the closing bracket is missing"),
    ("escape", "within double quotes write \\\\ for a backslash, or use single quotes"),
)


def syntax_error(error: yaml.MarkedYAMLError, text: str, first_line: int) -> UnreadableYaml:
    """What the parser found wrong in ``text``, with advice."""
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark else (0, 0)
    problem = error.problem or "unreadable"
    context = f" {error.context}" if error.context else ""
    lines = text.splitlines()
    shown = lines[line] if line < len(lines) else ""
    if "{{" in shown:
        hint = "{{ … }} is a template; fill it in first (helm template, for example)"
    elif shown[: column + 1].isspace() and "\t" in shown[: column + 1]:
        hint = _NO_TABS
    else:
        found = f"{problem}{context}"
        hint = next((advice for phrase, advice in _ADVICE if phrase in found), "")
    return UnreadableYaml(
        f"this is not YAML: {problem}{context}", hint, line + first_line, column + 1
    )
