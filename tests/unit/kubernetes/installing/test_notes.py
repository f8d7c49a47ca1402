"""What an administrator is told of an installation, and only where it matters."""

from typing import Any

import pytest

from vcjob.kubernetes.installing.installation import Installation
from vcjob.kubernetes.installing.notes import notes
from vcjob.kubernetes.installing.objects import Part

EVERYTHING = tuple(Part)
DEFINITIONS = "are for clusters without Volcano"
QUEUES = "makes the Queues root and default"
WEBHOOK = "Jobs are refused from when the webhook's configurations are there"


def told(
    parts: tuple[Part, ...] = EVERYTHING,
    looked: bool = False,
    defines_queues: bool = False,
    **options: Any,
) -> list[str]:
    return [*notes(Installation(**options), parts, looked=looked, defines_queues=defines_queues)]


def test_a_whole_installation() -> None:
    said = told()
    assert len(said) == 3
    for one, words in zip(said, (DEFINITIONS, QUEUES, WEBHOOK), strict=True):
        assert words in one


@pytest.mark.parametrize("part", EVERYTHING)
def test_a_part_draws_its_own_notes_only(part: Part) -> None:
    of_part = {Part.CRDS: [DEFINITIONS, QUEUES], Part.WEBHOOK: [WEBHOOK]}
    said = told((part,))
    expected = of_part.get(part, [])
    assert len(said) == len(expected)
    assert all(words in one for words, one in zip(expected, said, strict=True))


@pytest.mark.parametrize(
    ("known", "left"), [({"looked": True}, QUEUES), ({"defines_queues": True}, DEFINITIONS)]
)
def test_what_a_look_at_the_cluster_has_settled_is_not_said(
    known: dict[str, bool], left: str
) -> None:
    (said,) = told((Part.CRDS,), **known)
    assert left in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"namespaces": ("a", "b")}, "Rights are Roles in a and b, in vcjob-system and"),
        ({"namespaces": ("a",), "volcano_namespace": "v"}, "to read the Leases of Volcano, in v."),
        ({"namespaces": ("a",), "scheduler": "builtin"}, "There is a ClusterRole too"),
        ({"secrets": False}, "Jobs with the plugin ssh wait"),
        ({"third_party_plugins": True}, "code that runs with the rights of the operator"),
        ({"allowed_annotations": ("x/a", "x/b")}, "may use x/a and x/b: see docs/security.md"),
    ],
)
def test_each_choice_that_costs_something_is_told(options: dict[str, Any], words: str) -> None:
    said = told(**options)
    (about,) = [one for one in said if words in one]
    assert about.endswith(".")
    assert about not in told()
    has_webhook = "namespaces" not in options
    assert any(WEBHOOK in one for one in said) == has_webhook
