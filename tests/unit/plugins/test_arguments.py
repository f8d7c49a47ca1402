from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.plugins.arguments import Argument, Value, parse_arguments

ARGUMENTS = (
    Argument("on", True, "a switch"),
    Argument("port", 22, "a number"),
    Argument("path", "/x", "a text"),
    Argument("key", 1, "never shown", secret=True),
)


def read(*tokens: str) -> tuple[Value, Value, Value]:
    values = parse_arguments(ARGUMENTS, tokens).values
    return values["on"], values["port"], values["path"]


@pytest.mark.parametrize(
    ("tokens", "values"),
    [
        ([], (True, 22, "/x")),
        (["--port=1", "-path=/y"], (True, 1, "/y")),
        (["--port", "1", "-path", "/y"], (True, 1, "/y")),
        (["--on=false"], (False, 22, "/x")),
        (["--on=false", "--on"], (True, 22, "/x")),
        (["--port=1", "--port=2"], (True, 2, "/x")),
        (["--path="], (True, 22, "")),
        (["--path=a=b"], (True, 22, "a=b")),
        (["--path", "--port=1"], (True, 22, "--port=1")),
        *(([f"--on={word}"], (True, 22, "/x")) for word in ("1", "t", "T", "TRUE", "true", "True")),
        *(
            ([f"--on={word}"], (False, 22, "/x"))
            for word in ("0", "f", "F", "FALSE", "false", "False")
        ),
        *(
            ([f"--port={text}"], (True, number, "/x"))
            for text, number in (
                ("-5", -5),
                ("+5", 5),
                ("0", 0),
                ("0x1F", 31),
                ("0X1f", 31),
                ("0o17", 15),
                ("017", 15),
                ("0b101", 5),
                ("1_000", 1000),
                ("0x_1f", 31),
                ("0_17", 15),
                ("9223372036854775807", 2**63 - 1),
                ("-9223372036854775808", -(2**63)),
            )
        ),
    ],
)
def test_arguments_are_read_as_go_reads_flags(
    tokens: list[str], values: tuple[Value, Value, Value]
) -> None:
    parsed = parse_arguments(ARGUMENTS, tokens)
    assert not parsed.error
    assert read(*tokens) == values


@pytest.mark.parametrize(
    ("tokens", "values", "error", "position"),
    [
        (["--port=1", "--no=1", "--path=/y"], (True, 1, "/x"), "no argument --no", 1),
        (["--on=yes"], (False, 22, "/x"), '"yes" is neither true nor false', 0),
        (["--on="], (False, 22, "/x"), "neither true nor false", 0),
        (["--on=tRuE"], (False, 22, "/x"), "neither true nor false", 0),
        (["--port=a"], (True, 0, "/x"), "not a whole number", 0),
        (["--port="], (True, 0, "/x"), "not a whole number", 0),
        (["--port=08"], (True, 0, "/x"), "not a whole number", 0),
        (["--port=0x"], (True, 0, "/x"), "not a whole number", 0),
        (["--port=1__0"], (True, 0, "/x"), "not a whole number", 0),
        (["--port=_1"], (True, 0, "/x"), "not a whole number", 0),
        (["--port=1_"], (True, 0, "/x"), "not a whole number", 0),
        (["--port=1.5"], (True, 0, "/x"), "not a whole number", 0),
        (["--port=٣"], (True, 0, "/x"), "not a whole number", 0),
        (["--port=9223372036854775808"], (True, 2**63 - 1, "/x"), "out of range", 0),
        (["--port=-9223372036854775809"], (True, -(2**63), "/x"), "out of range", 0),
        (["--port=99999999999999999999x"], (True, 2**63 - 1, "/x"), "out of range", 0),
        (["--port"], (True, 22, "/x"), "--port lacks a value", 0),
        (["---port=1"], (True, 22, "/x"), "is no argument", 0),
        (["--=1"], (True, 22, "/x"), "is no argument", 0),
        (["-h", "--port=1"], (True, 22, "/x"), "asks for help", 0),
        (["--help"], (True, 22, "/x"), "asks for help", 0),
        (["--Port=1"], (True, 22, "/x"), "no argument --Port", 0),
        (["--on true"], (True, 22, "/x"), "no argument --on true", 0),
    ],
)
def test_an_error_ends_the_reading_and_leaves_what_go_leaves(
    tokens: list[str], values: tuple[Value, Value, Value], error: str, position: int
) -> None:
    parsed = parse_arguments(ARGUMENTS, tokens)
    assert error in parsed.error
    assert parsed.position == position
    assert read(*tokens) == values


@pytest.mark.parametrize(
    ("tokens", "position"),
    [
        (["--on", "false", "--port=1"], 1),
        (["port=1"], 0),
        (["-", "--port=1"], 0),
        (["", "--port=1"], 0),
        (["--", "--port=1"], 0),
    ],
)
def test_what_stands_behind_a_word_is_ignored_and_that_is_known(
    tokens: list[str], position: int
) -> None:
    parsed = parse_arguments(ARGUMENTS, tokens)
    assert parsed.ignored
    assert parsed.position == position
    assert parsed.values["port"] == 22


def test_two_dashes_at_the_end_hide_nothing() -> None:
    assert not parse_arguments(ARGUMENTS, ["--port=1", "--"]).ignored


def test_a_misspelt_argument_gets_a_suggestion() -> None:
    assert parse_arguments(ARGUMENTS, ["--pth=/y"]).hint == "did you mean --path?"
    assert parse_arguments(ARGUMENTS, ["--zzz=/y"]).hint.startswith("arguments are: --")
    assert "list element" in parse_arguments(ARGUMENTS, ["--on true"]).hint


def test_a_secret_value_never_stands_in_an_error() -> None:
    assert "hush" not in parse_arguments(ARGUMENTS, ["--key=hush"]).error


@given(st.lists(st.text("-=hpotrnaey01x_ ", max_size=8), max_size=4))
def test_whatever_the_tokens_are_each_value_keeps_its_type(tokens: Sequence[str]) -> None:
    values = parse_arguments(ARGUMENTS, tokens).values
    assert [type(values[one.name]) for one in ARGUMENTS] == [type(a.default) for a in ARGUMENTS]
