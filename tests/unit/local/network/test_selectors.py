"""Label selectors."""

from typing import Any

import pytest

from vcjob.local.network.selectors import Selector

RED = {"color": "red"}


def _expression(operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "color", "operator": operator, "values": [*values]}]}


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        ({}, {}, True),
        ({"matchLabels": RED}, RED, True),
        ({"matchLabels": RED}, {"color": "blue"}, False),
        ({"matchLabels": RED}, {}, False),
        ({"matchLabels": {**RED, "size": "1"}}, RED, False),
        (_expression("In", "red", "blue"), RED, True),
        (_expression("In", "blue"), RED, False),
        (_expression("NotIn", "red"), RED, False),
        (_expression("NotIn", "red"), {}, True),
        (_expression("Exists"), RED, True),
        (_expression("Exists"), {}, False),
        (_expression("DoesNotExist"), RED, False),
        (_expression("DoesNotExist"), {}, True),
        ({"matchLabels": RED, **_expression("NotIn", "red")}, RED, False),
        ({"matchLabels": None, "matchExpressions": None}, {}, True),
    ],
)
def test_matching(selector: dict[str, Any], labels: dict[str, str], matches: bool) -> None:
    assert Selector.of(selector).matches(labels) is matches


def test_the_order_in_which_it_is_written_does_not_matter() -> None:
    one = Selector.of({"matchLabels": {"a": "1", "b": "2"}})
    assert one == Selector.of({"matchLabels": {"b": "2", "a": "1"}})
    assert hash(one) == hash(Selector.of({"matchLabels": {"b": "2", "a": "1"}}))
