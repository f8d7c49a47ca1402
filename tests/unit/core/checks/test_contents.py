"""What is wrong with the values of ConfigMaps and Secrets."""

import base64
from typing import Any

import pytest

from vcjob.api.kinds import CONFIG_MAP, SECRET, Kind
from vcjob.api.problems import format_path
from vcjob.core.checks.contents import MOST_BYTES, check_contents


def encoded(length: int) -> str:
    return base64.b64encode(b"x" * length).decode()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (CONFIG_MAP, {"data": {"a": "x" * MOST_BYTES}}),
        (CONFIG_MAP, {"binaryData": {"a": encoded(MOST_BYTES)}}),
        (SECRET, {"data": {"a": encoded(MOST_BYTES - 1), "b": encoded(1)}}),
        (SECRET, {"stringData": {"a": "x" * MOST_BYTES}, "data": {"a": encoded(5)}}),
    ],
)
def test_a_mebibyte_of_values_is_allowed_and_a_byte_more_is_not(
    kind: Kind, values: dict[str, Any]
) -> None:
    assert check_contents(values, kind) == []

    field = next(iter(values))
    one = "x" if field in ("data", "stringData") and kind == CONFIG_MAP else encoded(1)
    (problem,) = check_contents({**values, field: {**values[field], "more": one}}, kind)

    assert "bytes together; a " in problem.message
    assert problem.message.endswith("may not have more than 1,048,576")
    assert format_path(problem.path) == field
    assert problem.hint.startswith('the largest value is that of "a"')


def test_texts_count_in_bytes() -> None:
    (problem,) = check_contents({"data": {"a": "é" * (MOST_BYTES // 2 + 1)}}, CONFIG_MAP)

    assert problem.message.startswith("the values have 1,048,578 bytes")


@pytest.mark.parametrize(
    ("kind", "values", "path", "said"),
    [
        (SECRET, {"data": {"a": "no base64!"}}, "data.a", 'the value of "a" is not base64'),
        (CONFIG_MAP, {"binaryData": {"a": "x"}}, "binaryData.a", "is not base64"),
        (CONFIG_MAP, {"data": {"a": ""}, "binaryData": {"a": ""}}, "binaryData.a", "in data as"),
    ],
)
def test_wrong_values_are_named(kind: Kind, values: dict[str, Any], path: str, said: str) -> None:
    (problem,) = check_contents(values, kind)

    assert said in problem.message
    assert format_path(problem.path) == path


@pytest.mark.parametrize("values", [{}, {"data": None}, {"data": 5}, {"data": {"a": None}}])
def test_what_has_other_types_is_left_to_the_checks_of_fields(values: dict[str, Any]) -> None:
    assert [check_contents(values, kind) for kind in (CONFIG_MAP, SECRET)] == [[], []]
