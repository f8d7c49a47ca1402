"""What an operator sees of a cluster."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.api.kinds import CONFIG_MAP, JOB, POD, QUEUE
from vcjob.controller.cluster import Gone
from vcjob.kubernetes.scope import EVERYTHING, Scope, versions_of, versions_text

SOME = Scope(("a", "b"), cluster_scoped=False)


def test_places_to_ask() -> None:
    assert EVERYTHING.places(POD, None) == (None,)
    assert SOME.places(POD, None) == ("a", "b")
    assert SOME.places(POD, "a") == ("a",)
    assert SOME.places(QUEUE, None) == (None,)
    assert Scope(("a",)).places(POD, None) == ("a",)
    assert Scope(("a", "b"), all_pods=True).places(POD, None) == (None,)
    assert Scope(("a", "b"), all_pods=True).places(JOB, None) == ("a", "b")


def test_what_is_in_no_namespace_may_be_hidden() -> None:
    assert SOME.is_hidden(QUEUE)
    assert not SOME.is_hidden(POD)
    assert not Scope(("a",)).is_hidden(QUEUE)


def test_only_pods_of_jobs_are_asked_for_unless_all_matter() -> None:
    assert EVERYTHING.selector(POD, None) == "volcano.sh/job-name"
    assert EVERYTHING.selector(POD, {"a": "b"}) == "a=b,volcano.sh/job-name"
    assert Scope(all_pods=True).selector(POD, None) == ""
    assert EVERYTHING.selector(CONFIG_MAP, {"a": "b", "c": "d"}) == "a=b,c=d"


NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,10}[a-z0-9])?", fullmatch=True)


@given(st.dictionaries(NAMES, st.integers(0).map(str), min_size=2))
def test_versions_of_several_namespaces_go_there_and_back(versions: dict[str, str]) -> None:
    assert versions_of(versions_text(versions), tuple(versions)) == versions


@pytest.mark.parametrize("text", ["", "12", "a=12", "a=12,b=3,c=4", "a=1,12"])
def test_a_version_that_does_not_tell_all_is_gone(text: str) -> None:
    with pytest.raises(Gone):
        versions_of(text, ("a", "b"))
