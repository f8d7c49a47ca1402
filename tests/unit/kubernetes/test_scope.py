"""What an operator sees of a cluster."""

from vcjob.api.kinds import CONFIG_MAP, JOB, POD, QUEUE
from vcjob.kubernetes.scope import EVERYTHING, Scope

SOME = Scope("a", cluster_scoped=False)


def test_places_to_ask() -> None:
    assert EVERYTHING.place(POD, None) is None
    assert SOME.place(POD, None) == "a"
    assert SOME.place(POD, "b") == "b"
    assert SOME.place(QUEUE, None) is None
    assert Scope("a", all_pods=True).place(POD, None) is None
    assert Scope("a", all_pods=True).place(JOB, None) == "a"


def test_what_is_in_no_namespace_may_be_hidden() -> None:
    assert SOME.is_hidden(QUEUE)
    assert not SOME.is_hidden(POD)
    assert not Scope("a").is_hidden(QUEUE)


def test_only_pods_of_jobs_are_asked_for_unless_all_matter() -> None:
    assert EVERYTHING.selector(POD, None) == "volcano.sh/job-name"
    assert EVERYTHING.selector(POD, {"a": "b"}) == "a=b,volcano.sh/job-name"
    assert Scope(all_pods=True).selector(POD, None) == ""
    assert EVERYTHING.selector(CONFIG_MAP, {"a": "b", "c": "d"}) == "a=b,c=d"
