import pytest

from vcjob.api.suggestions import closest, suggest

KNOWN = ("replicas", "minAvailable", "name")


@pytest.mark.parametrize(
    ("word", "best"),
    [("replica", "replicas"), ("MINAVAILABLE", "minAvailable"), ("nmae", "name"), ("zzz", "")],
)
def test_the_closest_word(word: str, best: str) -> None:
    assert closest(word, KNOWN) == best


def test_a_hint_names_the_closest_word_else_all_if_they_are_few() -> None:
    assert suggest("replica", KNOWN) == 'did you mean "replicas"?'
    assert suggest("zzz", KNOWN) == "known here: minAvailable, name, replicas"
    assert suggest("zzz", [str(number) for number in range(100)]) == ""
    assert suggest("zzz", []) == ""


def test_a_very_long_word_costs_nothing() -> None:
    assert closest("x" * 1_000_000, KNOWN) == ""


def test_thousands_of_known_words_are_not_compared() -> None:
    assert closest("replica", [*KNOWN, *map(str, range(1000))]) == ""
