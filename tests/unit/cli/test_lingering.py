"""What a Job waits for is told when it lasts, once, and not if the user knows it already."""

from vcjob.cli.lingering import Lingering


def test_only_what_lasts_is_told_and_once() -> None:
    jobs = Lingering()
    jobs.says("a", "0 of 2 pods have started", 0.0)
    jobs.says("b", "no room", 1.0)
    assert list(jobs.due(4.9)) == []
    jobs.says("a", "1 of 2 pods has started", 4.0)
    jobs.says("b", "no room", 4.0)
    assert list(jobs.due(6.0)) == [("b", "no room")]
    assert list(jobs.due(9.0)) == [("a", "1 of 2 pods has started")]
    assert list(jobs.due(99.0)) == []
    jobs.says("a", "", 100.0)
    assert list(jobs.due(199.0)) == []


def test_what_is_known_is_not_told_again_with_other_numbers() -> None:
    jobs = Lingering()
    jobs.was_told("a", "the claim data does not exist: create it")
    jobs.was_told("a", "")
    jobs.says("a", "the claim data does not exist: create it; 1 of 2 pods has started", 0.0)
    jobs.says("b", "the claim data does not exist: create it", 0.0)
    assert [uid for uid, _ in jobs.due(10.0)] == ["b"]
