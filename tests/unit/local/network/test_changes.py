"""The difference between what the filter holds and what it has to hold."""

from vcjob.local.network.changes import Changes
from vcjob.local.network.rules import Direction, Element, PodChain, SetKind, Update

MAP = "ingress_groups"
CHAIN = PodChain(Direction.INGRESS, ())


def element(key: int, chain: str = "", name: str = MAP) -> Element:
    return Element(name, SetKind.GROUPS, key, chain)


def test_what_came_and_went_between_two_calls_is_no_change() -> None:
    changes = Changes()
    changes.add_set("s", SetKind.GROUPS)
    changes.add_chain("c", CHAIN)
    changes.set("s", 1)
    changes.set(MAP, 1, "c")
    changes.unset(MAP, 1)
    changes.remove_chain("c")
    changes.remove_set("s")
    assert changes.take() == Update()


def test_an_element_that_leads_elsewhere_goes_and_comes_back() -> None:
    changes = Changes()
    changes.add_chain("c", CHAIN)
    changes.add_chain("d", CHAIN)
    changes.set(MAP, 1, "c")
    changes.take()
    changes.set(MAP, 1, "d")
    changes.remove_chain("c")
    update = changes.take()
    assert update.gone_elements == (element(1, "c"),)
    assert update.new_elements == (element(1, "d"),)
    assert update.gone_chains == ("c",)


def test_elements_of_a_set_that_goes_are_not_named() -> None:
    changes = Changes()
    changes.add_set("s", SetKind.GROUPS)
    changes.set("s", 1)
    changes.take()
    changes.unset("s", 1)
    changes.remove_set("s")
    assert changes.take() == Update(gone_sets=("s",))


def test_nothing_is_told_twice() -> None:
    changes = Changes()
    changes.set(MAP, 1, "")
    assert changes.take() == Update(new_elements=(element(1),))
    changes.set(MAP, 1, "")
    assert changes.take() == Update()
