"""Selectors say of each object whether it is wanted, or why nobody can tell."""

import pytest

from vcjob.api.kinds import CONFIG_MAP, EVENT, POD
from vcjob.local.apiserver.selectors import both, parse_field_selector, parse_label_selector
from vcjob.local.apiserver.status import Refused

OBJECTS = {
    "web": {"app": "web", "tier": "1"},
    "db": {"app": "db", "tier": "2"},
    "bare": {},
    "long": {"example.com/app": "web", "tier": "x"},
}

LABELS = [
    ("", "web db bare long"),
    ("app", "web db"),
    ("!app", "bare long"),
    ("! app", "bare long"),
    ("app=web", "web"),
    ("app==web", "web"),
    ("app = web", "web"),
    ("app!=web", "db bare long"),
    ("app=", ""),
    ("app in (web, db)", "web db"),
    ("app in (web),tier", "web"),
    ("app notin (web)", "db bare long"),
    ("app notin (web),app", "db"),
    ("tier>1", "db"),
    ("tier<2", "web"),
    ("example.com/app=web", "long"),
    ("app,tier!=2", "web"),
    (" app in (db) , tier in (1,2) ", "db"),
]


@pytest.mark.parametrize(("text", "expected"), LABELS)
def test_labels_are_selected_by_every_operator(text, expected):
    wanted = both(parse_label_selector(text))
    found = [name for name, labels in OBJECTS.items() if wanted({"metadata": {"labels": labels}})]

    assert found == expected.split()


@pytest.mark.parametrize(
    "text",
    ["app in web", "app in (web", "=web", "app=web db", "-a", "a/b/c", "app=-", "tier>x", "!a=b",
     "a=b,,c", "app in ((x))", "a,!", "a,", "a=b, ", f"{'a' * 64}"],
)  # fmt: skip
def test_a_label_selector_that_means_nothing_is_refused(text):
    with pytest.raises(Refused) as refused:
        parse_label_selector(text)
    assert refused.value.code == 400


def test_an_object_without_labels_lacks_every_label():
    wanted = parse_label_selector("!app")

    assert wanted is not None
    assert wanted({"metadata": {}})
    assert wanted({"metadata": {"labels": None}})


POD_OBJECT = {
    "metadata": {"name": "p", "namespace": "n"},
    "spec": {"nodeName": "m"},
    "status": {"phase": "Running"},
}
FIELDS = [
    ("metadata.name=p", True),
    ("metadata.name!=p", False),
    ("metadata.namespace==n", True),
    ("spec.nodeName=m,status.phase=Running", True),
    ("spec.nodeName=m,status.phase!=Running", False),
    ("spec.nodeName=", False),
    ("status.podIP=", True),
    ("spec.hostNetwork=false", True),
]


@pytest.mark.parametrize(("text", "expected"), FIELDS)
def test_fields_are_selected(text, expected):
    wanted = parse_field_selector(text, POD)

    assert wanted is not None
    assert wanted(POD_OBJECT) is expected


def test_a_comma_in_a_value_is_escaped():
    wanted = parse_field_selector(r"reason=a\,b\=c", EVENT)

    assert wanted is not None
    assert wanted({"metadata": {}, "reason": "a,b=c"})


@pytest.mark.parametrize(
    ("text", "kind"),
    [("spec.nodeName=m", CONFIG_MAP), ("spec.containers=x", POD), ("metadata.name", POD),
     ("metadata.name>1", POD), (",", POD)],
)  # fmt: skip
def test_a_field_that_nothing_is_selected_by_is_refused(text, kind):
    with pytest.raises(Refused) as refused:
        parse_field_selector(text, kind)
    assert refused.value.code == 400
