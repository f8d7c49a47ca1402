"""The one grammar for Jobs and pods on the command line."""

import click
import pytest

from vcjob.api.types import Object
from vcjob.cli.selection import (
    JobNameType,
    Reference,
    ReferenceType,
    job_of,
    one_reference,
    selects,
)


@pytest.mark.parametrize(
    ("word", "reference"),
    [("mnist", Reference("mnist")), ("mnist/worker-0", Reference("mnist", "worker-0"))],
)
def test_a_word_is_a_job_or_a_part_of_one(word: str, reference: Reference) -> None:
    assert ReferenceType().convert(word, None, None) == reference
    assert str(reference) == word


@pytest.mark.parametrize("word", ["", "/worker-0", "mnist/", "a/b/c"])
def test_what_is_neither_is_refused(word: str) -> None:
    with pytest.raises(click.BadParameter, match="mnist/worker-0"):
        ReferenceType().convert(word, None, None)


def test_where_whole_jobs_are_meant_pods_are_refused() -> None:
    assert JobNameType().convert("mnist", None, None) == "mnist"
    with pytest.raises(click.BadParameter, match="whole Jobs"):
        JobNameType().convert("mnist/worker-0", None, None)


def test_a_pod_beside_its_job_is_shown_the_slash() -> None:
    with pytest.raises(click.UsageError, match="with a slash: mnist/worker-0"):
        one_reference((Reference("mnist"), Reference("worker-0")))


@pytest.mark.parametrize(
    ("part", "selected"),
    [("", True), ("worker-0", True), ("mnist-worker-0", True), ("worker", True),
     ("worker-1", False), ("work", False), ("ps", False)],
)  # fmt: skip
def test_a_part_names_a_pod_or_its_task(part: str, selected: bool) -> None:
    annotations = {"volcano.sh/task-spec": "worker"}
    pod: Object = {"metadata": {"name": "mnist-worker-0", "annotations": annotations}}
    assert selects(part, "mnist", pod) is selected


@pytest.mark.parametrize(
    ("name", "job"),
    [("mnist", "mnist"), ("mnist-ps-0", "mnist"), ("mnist-b-ps-0", "mnist-b"), ("mnist2", "")],
)
def test_an_object_belongs_to_the_job_with_the_longest_name(name: str, job: str) -> None:
    assert job_of(name, ["mnist", "mnist-b"]) == job
