"""Kinds by the names that users know from kubectl."""

import pytest

from vcjob.api.kinds import JOB, PERSISTENT_VOLUME_CLAIM, POD, QUEUE, Kind
from vcjob.cli.get import chosen
from vcjob.cli.kinds import kind_called


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("pods", POD), ("po", POD), ("Pod", POD), ("vcjob", JOB), ("vj", JOB), ("jobs", JOB),
        ("jobs.batch.volcano.sh", JOB), ("jobs.v1alpha1.batch.volcano.sh", JOB),
        ("jobs.batch", None), ("q", QUEUE), ("pvc", PERSISTENT_VOLUME_CLAIM), ("mnist", None),
    ],
)  # fmt: skip
def test_a_kind_is_found_by_each_of_its_names(word: str, kind: Kind | None) -> None:
    assert kind_called(word) == kind


@pytest.mark.parametrize(
    ("words", "kinds", "names"),
    [
        (("pods",), [POD], []),
        (("pod", "a", "b"), [POD], ["a", "b"]),
        (("pod/a",), [POD], ["a"]),
        (("po,vj",), [POD, JOB], []),
        (("po,x",), [], []),
        (("mnist",), [], []),
        (("mnist/worker-0",), [], []),
    ],
)
def test_words_are_a_kind_with_names_or_a_job(
    words: tuple[str, ...], kinds: list[Kind], names: list[str]
) -> None:
    assert chosen(words) == (kinds, names)
