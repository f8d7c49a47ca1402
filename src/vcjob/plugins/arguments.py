"""Plugin arguments: the flag syntax of Go's ``flag`` package, one list element a token.

Source: plugins.md section 2. Volcano reads arguments this way and goes on with what it has when
one is wrong, so what values hold after an error is part of the behaviour; the error itself is
kept as a sentence for ``validate``, admission and Events.
"""

from collections.abc import Mapping, Sequence

import msgspec

from vcjob.api.suggestions import closest

Value = bool | int | str

MOST_PORT = 65535

_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_BASES = {"b": 2, "o": 8, "x": 16}
_HELP = frozenset(("h", "help"))


class Argument(msgspec.Struct, frozen=True):
    """One argument of a plugin. Its type (bool, int or str) is that of ``default``.

    ``secret`` values are never shown. A ``port`` is the number of a TCP port on which pods listen.
    """

    name: str
    default: Value
    help: str
    secret: bool = False
    port: bool = False

    @property
    def type_name(self) -> str:
        """The type as help texts call it."""
        return {bool: "bool", int: "int", str: "string"}[type(self.default)]


class ParsedArguments(msgspec.Struct, frozen=True):
    """What a plugin's argument list says.

    ``error`` is a sentence, empty if all is right; ``hint`` says what would be right. ``position``
    is that of the token at fault, or with ``ignored`` of the first token that is never read.
    """

    values: Mapping[str, Value]
    error: str = ""
    hint: str = ""
    position: int = 0
    ignored: bool = False


class _WrongValue(Exception):
    """A value that its argument cannot take; ``value`` is what Go assigns nevertheless."""

    def __init__(self, why: str, hint: str, value: Value) -> None:
        super().__init__(why)
        self.hint = hint
        self.value = value


def parse_arguments(arguments: Sequence[Argument], tokens: Sequence[str]) -> ParsedArguments:
    """Read ``tokens``; never raises. Reading ends at the first error, as in Volcano."""
    known = {argument.name: argument for argument in arguments}
    values: dict[str, Value] = {argument.name: argument.default for argument in arguments}
    position = 0
    while position < len(tokens):
        start, token = position, tokens[position]
        if len(token) < 2 or token[0] != "-":
            return ParsedArguments(values, position=start, ignored=True)
        if token == "--":
            return ParsedArguments(values, position=start, ignored=start + 1 < len(tokens))
        position += 1
        name, equals, text = token[2 if token[1] == "-" else 1 :].partition("=")
        if not name or name[0] == "-":
            return _failed(values, start, f"{_shown(token)} is no argument", "write --name=value")
        argument = known.get(name)
        if argument is None:
            return _unknown(values, start, name, known)
        if isinstance(argument.default, bool):
            text = text if equals else "true"
        elif not equals:
            if position == len(tokens):
                error = f"--{name} lacks a value"
                return _failed(values, start, error, f"write --{name}={argument.type_name}")
            text = tokens[position]
            position += 1
        try:
            values[name] = _value(argument.default, text)
        except _WrongValue as wrong:
            values[name] = wrong.value
            shown = "its value" if argument.secret else _shown(text)
            return _failed(values, start, f"--{name}: {shown} {wrong}", wrong.hint)
    return ParsedArguments(values)


def _failed(values: Mapping[str, Value], position: int, error: str, hint: str) -> ParsedArguments:
    return ParsedArguments(values, error, hint, position)


def _unknown(
    values: Mapping[str, Value], position: int, name: str, known: Mapping[str, Argument]
) -> ParsedArguments:
    listed = ", ".join(f"--{other}" for other in known) or "none"
    if name in _HELP:
        error = f"--{name} asks for help, which ends the reading of the arguments"
        return _failed(values, position, error, f"arguments are: {listed}")
    if any(space in name for space in " \t\n"):
        hint = "each argument must be a list element of its own"
    elif not known:
        hint = "the plugin takes no arguments"
    else:
        best = closest(name, known)
        hint = f"did you mean --{best}?" if best else f"arguments are: {listed}"
    return _failed(values, position, f"there is no argument --{name[:100]}", hint)


def _shown(text: str) -> str:
    return f'"{text[:100]}"'


def _value(default: Value, text: str) -> Value:
    if isinstance(default, bool):
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
        raise _WrongValue("is neither true nor false", "write true or false", False)
    return _integer(text) if isinstance(default, int) else text


def _integer(text: str) -> int:
    """A whole number as Go's ``strconv.ParseInt(text, 0, 64)`` reads it."""
    negative = text[:1] == "-"
    digits = text[1:] if text[:1] in ("+", "-") else text
    base, rest = 10, digits
    if digits[:1] == "0" and len(digits) > 1:
        prefixed = digits[1].lower() in _BASES
        base = _BASES[digits[1].lower()] if prefixed else 8
        rest = digits[2 if prefixed else 1 :]
    number, after_digit, has_digits = 0, base != 10, False
    misplaced = False
    for char in rest:
        if char == "_":
            misplaced |= not after_digit
            after_digit = False
            continue
        digit = int(char, 36) if char.isascii() and char.isalnum() else base
        if digit >= base:
            raise _not_whole()
        after_digit = has_digits = True
        number = number * base + digit
        if number > _HIGHEST + 1:
            break  # Go notices that before it looks at what follows
    extreme = _LOWEST if negative else _HIGHEST
    signed = -number if negative else number
    if number > _HIGHEST + 1:
        raise _WrongValue("is out of range", "write a smaller number", extreme)
    if not has_digits or misplaced or not after_digit:
        raise _not_whole()
    if not _LOWEST <= signed <= _HIGHEST:
        raise _WrongValue("is out of range", "write a smaller number", extreme)
    return signed


def _not_whole() -> _WrongValue:
    return _WrongValue("is not a whole number", "write a number such as 2222", 0)
