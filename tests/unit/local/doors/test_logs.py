"""``pods/log`` over HTTP: which run of which container, and what is refused."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from served import PODS, Answer, served

from vcjob.api.kinds import POD
from vcjob.local.agent.log_files import LogFiles
from vcjob.local.agent.logs import Logs
from vcjob.local.apiserver.status import Refused
from vcjob.local.doors.logs import LogDoor, run_asked
from vcjob.local.doors.targets import Target
from vcjob.local.store import Store

_SECOND = 1_000_000_000
_NOW = 1_700_000_100 * _SECOND


def _status(number: int | None, *, state: str, restarted: bool = False) -> dict[str, Any]:
    """Of a container whose latest run has a number."""
    states: dict[str, Any] = {
        "waiting": {"waiting": {"reason": "CrashLoopBackOff"}},
        "creating": {"waiting": {"reason": "ContainerCreating"}},
        "running": {"running": {"startedAt": "2023-11-14T22:13:20Z"}},
        "terminated": {"terminated": {"exitCode": 1, "message": "no such program"}},
    }
    told = {"name": "main", "state": states[state]}
    if number is not None:
        told["containerID"] = f"vcjob://u/main/{number}"
    if restarted:
        told["lastState"] = {"terminated": {"exitCode": 1}}
    return told


def _asked(
    directory: Path,
    status: dict[str, Any] | None,
    *names: str,
    inits: Sequence[str] = (),
    method: str = "GET",
    **query: str,
) -> Answer:
    """What the server answers about the log of a pod with these containers, ``main`` first."""

    async def run() -> Answer:
        now = [_NOW - 20 * _SECOND]
        logs = Logs(LogFiles(str(directory), pytest.fail, clock=lambda: now[0]), lambda *said: None)
        store = Store(lambda: 0.0)
        door = LogDoor(store, logs, lambda: _NOW)
        async with served(store=store, doors={"log": door}) as ask:
            spec = {
                "containers": [{"name": name, "image": "i"} for name in ("main", *names)],
                "initContainers": [{"name": name, "image": "i"} for name in inits],
            }
            (pod,) = await ask.made(PODS, {"metadata": {"name": "p"}, "spec": spec})
            for number in range(3):
                path = logs.files.path("default", "p", "main", number)
                for word in (b"old", b"new"):
                    logs.files.append(path, b"%s %d\n" % (word, number), pod["metadata"]["uid"])
                    now[0] += 10 * _SECOND
                now[0] = _NOW - 20 * _SECOND
            if status:
                await store.patch(
                    POD, "default", "p", {"status": {"containerStatuses": [status]}},
                    subresource="status",
                )  # fmt: skip
            return await ask(method, f"{PODS}/p/log", **query)

    return asyncio.run(run())


_RUNNING = _status(2, state="running", restarted=True)


@pytest.mark.parametrize(
    ("status", "query", "expected"),
    [
        (_RUNNING, {}, "old 2\nnew 2\n"),
        (_RUNNING, {"previous": "true"}, "old 1\nnew 1\n"),
        (_status(2, state="terminated"), {}, "old 2\nnew 2\n"),
        (_status(2, state="waiting", restarted=True), {}, "old 2\nnew 2\n"),
        (_status(2, state="waiting", restarted=True), {"previous": "true"}, "old 2\nnew 2\n"),
        (_RUNNING, {"container": "main", "tailLines": "1"}, "new 2\n"),
        (_RUNNING, {"sinceSeconds": "15"}, "new 2\n"),
        (_RUNNING, {"sinceTime": "2023-11-14T22:14:51.5+00:00"}, ""),
        (_RUNNING, {"sinceTime": "2023-11-14T22:14:49.999Z"}, "new 2\n"),
        (_RUNNING, {"limitBytes": "8"}, "old 2\nne"),
        (_RUNNING, {"follow": "true"}, "old 2\nnew 2\n"),  # nothing writes to it any more
        (_RUNNING, {"timestamps": "true", "tailLines": "1"},
         "2023-11-14T22:14:50.000000000Z new 2\n"),
    ],
)  # fmt: skip
def test_the_output_of_a_run(
    tmp_path: Path, status: dict[str, Any], query: dict[str, str], expected: str
) -> None:
    answer = _asked(tmp_path, status, **query)
    assert (answer.code, answer.body) == (200, expected)
    assert answer.headers["Content-Type"] == "text/plain"


@pytest.mark.parametrize(
    ("status", "query", "code", "said"),
    [
        (None, {}, 400, 'container "main" in pod "p" is waiting to start: ContainerCreating'),
        (_status(None, state="creating"), {}, 400, "is waiting to start: ContainerCreating"),
        (_status(None, state="terminated"), {}, 400, "did not start: no such program"),
        (_status(0, state="running"), {"previous": "true"}, 400,
         'previous terminated container "main" in pod "p" not found'),
        (_RUNNING, {"container": "other"}, 400, "container other is not valid for pod p"),
        (_RUNNING, {"tailLines": "-1"}, 400, "tailLines"),
        (_RUNNING, {"limitBytes": "0"}, 422, "limitBytes must be greater than 0"),
        (_RUNNING, {"sinceSeconds": "0"}, 422, "sinceSeconds"),
        (_RUNNING, {"sinceSeconds": "1", "sinceTime": "2023-11-14T22:14:51Z"}, 422, "at most one"),
        (_RUNNING, {"sinceTime": "yesterday"}, 400, "RFC 3339"),
        (_RUNNING, {"sinceTime": "2023-11-14T22:14:51"}, 400, "RFC 3339"),
        (_RUNNING, {"stream": "Stderr"}, 422, "stream=All"),
        (_RUNNING, {"follow": "perhaps"}, 400, "follow"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_refused_with_a_reason(
    tmp_path: Path, status: dict[str, Any] | None, query: dict[str, str], code: int, said: str
) -> None:
    answer = _asked(tmp_path, status, **query)
    assert answer.code == code
    assert said in answer.body["message"]


def test_a_pod_without_a_place_says_what_it_waits_for() -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "no room for 500 cpu"}
    pod = {"metadata": {"name": "p"}, "status": {"conditions": [condition]}}
    with pytest.raises(Refused, match=r"waiting to start: no room for 500 cpu$"):
        run_asked(Target(pod, {"name": "main"}), previous=False)


@pytest.mark.parametrize(
    ("inits", "said"), [((), ""), (("a", "b"), " or one of the init containers: [a b]")]
)
def test_of_several_containers_one_must_be_named(
    tmp_path: Path, inits: Sequence[str], said: str
) -> None:
    answer = _asked(tmp_path, _RUNNING, "beside", inits=inits)
    assert answer.code == 400
    expected = "a container name must be specified for pod p, choose one of: [main beside]"
    assert answer.body["message"] == expected + said


def test_the_only_one_beside_init_containers_needs_no_name(tmp_path: Path) -> None:
    answer = _asked(tmp_path, _RUNNING, inits=["before"])
    assert (answer.code, answer.body) == (200, "old 2\nnew 2\n")


def test_a_log_is_only_read(tmp_path: Path) -> None:
    assert _asked(tmp_path, _RUNNING, method="POST").code == 405
