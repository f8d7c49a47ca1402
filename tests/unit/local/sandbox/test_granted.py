import pytest

from vcjob.local.node.identity import IdMaps, IdRange
from vcjob.local.sandbox.granted import not_granted

ONE = IdMaps((IdRange(0, 1000, 1),), (IdRange(0, 1000, 1),))
ALL = IdMaps((IdRange(0, 0, 4294967295),), (IdRange(0, 0, 4294967295),))


def spec(pod: dict[str, object], context: dict[str, object] | None = None) -> dict[str, object]:
    return {**pod, "containers": [{"name": "c", "securityContext": context or {}}]}


@pytest.mark.parametrize(
    ("pod_spec", "maps", "words"),
    [
        (spec({"hostNetwork": True}), ALL, "hostNetwork is not granted"),
        (spec({"hostPID": True}), ALL, "hostPID is not granted"),
        (spec({"hostIPC": True}), ALL, "hostIPC is not granted"),
        (spec({}, {"privileged": True}), ALL, "privileged is not granted"),
        (
            spec({}, {"capabilities": {"add": ["IPC_LOCK", "SYS_ADMIN"]}}),
            ALL,
            "IPC_LOCK, SYS_ADMIN",
        ),
        (spec({"securityContext": {"fsGroup": 7}}), ONE, "fsGroup 7 is not granted"),
        (spec({}, {"runAsUser": 1000}), ONE, "runAsUser 1000 is not granted"),
    ],
)
def test_what_is_not_granted_is_named(
    pod_spec: dict[str, object], maps: IdMaps, words: str
) -> None:
    (sentence,) = not_granted(pod_spec, maps)
    assert words in sentence


def test_what_is_granted_is_not_named() -> None:
    pod = {"hostNetwork": False, "securityContext": {"runAsUser": 1000, "fsGroup": 7}}
    assert not_granted(spec(pod, {"capabilities": {"drop": ["ALL"]}}), ALL) == ()
    assert not_granted(spec({}, {"runAsUser": 0}), ONE) == ()


def test_the_same_wish_of_several_containers_is_told_once() -> None:
    container = {"securityContext": {"privileged": True}}
    pod = {"containers": [container, container], "initContainers": [container]}
    assert len(not_granted(pod, ALL)) == 1
