"""How long room is held for pods that find no node though they seem to fit."""

from vcjob.core.scheduling.overlooked import Overlooked

PODS, OTHERS = ("group", "worker"), ("group", "ps")


def test_pods_that_seem_to_fit_all_the_time_are_given_up_once() -> None:
    overlooked = Overlooked(60.0)
    assert not overlooked.look({PODS: True, OTHERS: False}, 100.0)
    assert overlooked.next_due() == 160.0
    assert not overlooked.is_overlooked(PODS)
    assert overlooked.look({PODS: True, OTHERS: False}, 160.0)
    assert overlooked.is_overlooked(PODS)
    assert not overlooked.is_overlooked(OTHERS)
    assert overlooked.next_due() is None
    assert not overlooked.look({PODS: True}, 170.0), "nothing is held any more anyway"


def test_pods_that_do_not_fit_for_a_while_get_new_time() -> None:
    overlooked = Overlooked(60.0)
    for fits, now in ((True, 0.0), (False, 50.0), (True, 60.0), (True, 119.0)):
        overlooked.look({PODS: fits}, now)
        assert not overlooked.is_overlooked(PODS)
    overlooked.look({PODS: True}, 120.0)
    assert overlooked.is_overlooked(PODS)


def test_pods_that_are_refused_no_more_are_forgotten() -> None:
    overlooked = Overlooked(60.0)
    overlooked.look({PODS: True}, 0.0)
    overlooked.look({PODS: True}, 60.0)
    overlooked.look({}, 61.0)
    assert not overlooked.is_overlooked(PODS)
    assert overlooked.next_due() is None
