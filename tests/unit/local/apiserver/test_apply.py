"""Server-side apply: who applied a field owns it, until it is wished no longer or taken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.api.kinds import POD
from vcjob.local.apiserver.apply import apply, taken_over, without_managed_fields
from vcjob.local.apiserver.field_sets import fields_of, read_fields, write_fields
from vcjob.local.apiserver.schemas.kinds import OF_KINDS
from vcjob.local.apiserver.status import Refused

SCHEMA = OF_KINDS[POD]


def wish(*containers, **metadata):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", **metadata},
        "spec": {"containers": list(containers)},
    }


def applied(live, *wishes, force=False):
    for manager, wished in wishes:
        live = apply(live, wished, SCHEMA, manager, "now", force=force)
    return live


def names(obj):
    return [container["name"] for container in obj["spec"]["containers"]]


def owned(obj, manager):
    [entry] = [e for e in obj["metadata"]["managedFields"] if e["manager"] == manager]
    return read_fields(entry["fieldsV1"])


def test_items_of_a_keyed_list_have_owners_of_their_own():
    both = applied(None, ("one", wish({"name": "a"})), ("two", wish({"name": "b", "image": "x"})))
    less = applied(both, ("two", wish()))

    assert names(both) == ["a", "b"]
    assert names(less) == ["a"]


def test_a_field_that_two_applied_stays_until_both_let_go():
    shared = {"name": "a", "image": "x"}
    both = applied(None, ("one", wish(shared)), ("two", wish(shared)))
    one = applied(both, ("one", wish({"name": "a"})))
    none = applied(one, ("two", wish({"name": "a"})))

    assert one["spec"]["containers"] == [shared]
    assert none["spec"]["containers"] == [{"name": "a"}]


def test_fields_that_nobody_applied_are_nobodys_to_remove():
    live = wish({"name": "a", "image": "x", "command": ["c"]}, labels={"by": "hand"})
    first = applied(live, ("one", wish({"name": "a", "image": "y"}, labels={"mine": "1"})))
    second = applied(first, ("one", wish({"name": "a"})))

    assert second["spec"]["containers"] == [{"name": "a", "command": ["c"]}]
    assert second["metadata"]["labels"] == {"by": "hand"}


def test_a_different_value_is_a_conflict_and_force_takes_the_field():
    live = applied(None, ("one", wish({"name": "a", "image": "x"})))
    other = wish({"name": "a", "image": "y"})

    with pytest.raises(Refused) as refused:
        applied(live, ("two", other))
    forced = applied(live, ("two", other), force=True)

    assert refused.value.code == 409
    assert [cause.field for cause in refused.value.causes] == [
        '.spec.containers[{"name":"a"}].image'
    ]
    assert forced["spec"]["containers"] == [{"name": "a", "image": "y"}]
    assert not any(path[-1] == "f:image" for path in owned(forced, "one"))
    assert any(path[-1] == "f:image" for path in owned(forced, "two"))


def test_to_apply_the_same_again_changes_nothing():
    wished = wish({"name": "a", "env": [{"name": "X", "value": "1"}]}, finalizers=["f"])
    live = applied(None, ("one", wished))

    assert apply(live, wished, SCHEMA, "one", "later", force=False) is live


def test_finalizers_are_a_set():
    live = applied(None, ("one", wish(finalizers=["a"])), ("two", wish(finalizers=["b"])))
    less = applied(live, ("one", wish()))

    assert live["metadata"]["finalizers"] == ["a", "b"]
    assert less["metadata"]["finalizers"] == ["b"]


def test_ports_are_told_apart_by_protocol_too():
    ports = [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}]
    live = applied(None, ("one", wish({"name": "a", "ports": ports})))
    less = applied(live, ("one", wish({"name": "a", "ports": ports[:1]})))

    assert live["spec"]["containers"][0]["ports"] == ports
    assert less["spec"]["containers"][0]["ports"] == ports[:1]


IMAGES = st.sampled_from(["x", "y"])
CONTAINERS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abc")}, optional={"image": IMAGES}),
    max_size=3,
    unique_by=lambda container: container["name"],
)
LABELS = st.dictionaries(st.sampled_from("lmn"), IMAGES)
WISHES = st.builds(lambda some, labels: wish(*some, labels=labels), CONTAINERS, LABELS)


@given(st.lists(st.tuples(st.sampled_from(["one", "two"]), WISHES), min_size=1, max_size=6))
def test_after_a_forced_apply_the_wish_holds_and_nothing_is_left_without_an_owner(steps):
    live = applied(None, *steps, force=True)
    wished = steps[-1][1]

    fields = fields_of(without_managed_fields(live), SCHEMA)
    entries = live["metadata"]["managedFields"]
    everybodys = {path for entry in entries for path in read_fields(entry["fieldsV1"])}
    wanted = {c["name"]: c for c in wished["spec"]["containers"]}
    found = {c["name"]: c for c in live["spec"]["containers"]}
    assert all(found[name].items() >= container.items() for name, container in wanted.items())
    assert live["metadata"].get("labels", {}).items() >= wished["metadata"]["labels"].items()
    leaves = {path for path in fields if path[-1] in ("f:image", "f:l", "f:m", "f:n")}
    assert leaves <= everybodys


@given(WISHES)
def test_field_sets_are_written_and_read_back(wished):
    fields = fields_of(wished, SCHEMA)

    assert read_fields(write_fields(fields)) == fields


def updated(live, new, manager="hand"):
    kept = {**new["metadata"], "managedFields": live["metadata"]["managedFields"]}
    return taken_over(live, {**new, "metadata": kept}, SCHEMA, manager, "now")


def test_who_updates_what_was_applied_owns_it():
    live = applied(None, ("one", wish({"name": "a", "image": "x"}, labels={"l": "1"})))
    changed = updated(live, wish({"name": "a", "image": "y"}, labels={"l": "1"}))

    assert owned(changed, "hand") == {
        ("f:spec", "f:containers", 'k:{"name":"a"}', "f:image"),
    }
    with pytest.raises(Refused, match=r'conflict with "hand": .*image') as refused:
        apply(changed, wish({"name": "a", "image": "x"}), SCHEMA, "one", "now", force=False)
    assert refused.value.code == 409
    forced = apply(changed, wish({"name": "a", "image": "x"}), SCHEMA, "one", "now", force=True)
    assert [entry["manager"] for entry in forced["metadata"]["managedFields"]] == ["one"]


def test_an_update_of_what_nobody_applied_owns_nothing():
    live = applied(None, ("one", wish({"name": "a"})))
    new = wish({"name": "a", "image": "y"})

    assert updated(live, new)["metadata"]["managedFields"] == live["metadata"]["managedFields"]
    assert taken_over(wish(), new, SCHEMA, "hand", "now") is new


def test_what_an_update_removes_is_nobodys():
    live = applied(None, ("one", wish({"name": "a", "image": "x"}, labels={"l": "1"})))
    changed = updated(live, wish({"name": "a"}, labels={"l": "1"}))

    assert [entry["manager"] for entry in changed["metadata"]["managedFields"]] == ["one"]
    again = apply(changed, wish({"name": "a", "image": "z"}), SCHEMA, "one", "now", force=False)
    assert again["spec"]["containers"] == [{"name": "a", "image": "z"}]


def test_a_second_update_adds_to_what_its_manager_owns():
    live = applied(None, ("one", wish({"name": "a", "image": "x"}, labels={"l": "1"})))
    first = updated(live, wish({"name": "a", "image": "y"}, labels={"l": "1"}))
    second = updated(first, wish({"name": "a", "image": "y"}, labels={"l": "2"}))

    assert {path[-1] for path in owned(second, "hand")} == {"f:image", "f:l"}
    third = updated(second, wish({"name": "a", "image": "z"}, labels={"l": "2"}), "other")
    assert {path[-1] for path in owned(third, "hand")} == {"f:l"}
    assert {path[-1] for path in owned(third, "other")} == {"f:image"}
