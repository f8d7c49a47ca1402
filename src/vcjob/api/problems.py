"""What can be wrong with an object, and where: the one shape that every check answers with."""

import msgspec

Path = tuple[str | int, ...]
"""Where in an object: keys and list positions, outermost first."""


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing wrong: a sentence, what would be right, and where.

    ``warning`` problems are told but refuse nothing. ``document`` (counted from 0), ``line`` and
    ``column`` (counted from 1) are known only for objects that were read from manifest text.
    """

    message: str
    path: Path = ()
    hint: str = ""
    warning: bool = False
    file: str = ""
    document: int = 0
    line: int = 0
    column: int = 0
    job: str = ""


def format_path(path: Path) -> str:
    """``("spec", "tasks", 0, "name")`` as people write it: ``spec.tasks[0].name``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif all(c.isalnum() or c in "-_" for c in part) and part:
            text += f".{part}" if text else part
        else:
            text += f'["{part}"]'
    return text


def printable(text: str) -> str:
    """``text`` in one line without control characters: what comes from a manifest is untrusted."""
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def _escape(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def sentence(problem: Problem) -> str:
    """What is wrong and what would be right, in one line."""
    return f"{problem.message}; {problem.hint}" if problem.hint else problem.message


def errors(problems: list[Problem]) -> list[Problem]:
    """Only those that refuse."""
    return [problem for problem in problems if not problem.warning]
