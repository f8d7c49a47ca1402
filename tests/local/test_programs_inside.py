"""Exec probes and hooks: programs that run inside the containers of real pods."""

import pytest
from test_pods import Play, Pods, play, shell

from vcjob.api.kinds import EVENT
from vcjob.api.types import Object

pytestmark = pytest.mark.local

__all__ = ["play"]


def probe(script: str, **settings: int) -> Object:
    return {"exec": {"command": ["sh", "-c", script]}, "periodSeconds": 1, **settings}


async def events(pods: Pods, reason: str) -> list[str]:
    found = (await pods.cluster.list(EVENT)).items
    return [event["message"] for event in found if event["reason"] == reason]


def test_readiness_follows_a_program_in_the_container(play: Play) -> None:
    async def story(pods: Pods) -> None:
        main = shell("until test -e failed; do sleep 0.02; done; touch go; exec sleep 600")
        check = "test $GREETING = hello && test $PWD = /tmp && test -e go"
        await pods.create(
            {
                **main,
                "readinessProbe": probe(
                    f"{check} || {{ echo no; touch failed; false; }}", failureThreshold=1
                ),
                "workingDir": "/tmp",
                "env": [{"name": "GREETING", "value": "hello"}],
            },
        )
        await pods.until(
            lambda s: s.get("containerStatuses") and s["containerStatuses"][0]["ready"]
        )
        assert await events(pods, "Unhealthy") == [
            "container main: readiness probe failed: exit code 1: no"
        ]

    play(story)


@pytest.mark.parametrize(
    ("script", "message"),
    [("echo ill; exit 3", "exit code 3: ill"), ("sleep 600", "no answer within 1 s")],
)
def test_a_container_whose_liveness_program_fails_is_restarted(
    play: Play, script: str, message: str
) -> None:
    async def story(pods: Pods) -> None:
        await pods.create(
            {**shell("exec sleep 600"), "livenessProbe": probe(script, failureThreshold=1)},
            restartPolicy="Always",
            terminationGracePeriodSeconds=1,
        )
        await pods.until(
            lambda s: s.get("containerStatuses") and s["containerStatuses"][0]["restartCount"]
        )
        assert await events(pods, "Unhealthy") == [
            f"container main failed its liveness probe ({message}); ended"
        ]

    play(story)


def test_hooks_run_in_the_container(play: Play) -> None:
    async def story(pods: Pods) -> None:
        wait = "until test -e /{0}; do sleep 0.02; done; echo {0}"
        script = f"{wait.format('started')}; {wait.format('stop')}"
        lifecycle = {
            "postStart": {"exec": {"command": ["touch", "/started"]}},
            "preStop": {"exec": {"command": ["sh", "-c", "touch /stop; sleep 600"]}},
        }
        await pods.create({**shell(script), "lifecycle": lifecycle})
        await pods.line("started")
        await pods.delete()
        assert pods.said() == ["started", "stop"]

    play(story)


def test_a_container_whose_post_start_program_fails_is_ended(play: Play) -> None:
    async def story(pods: Pods) -> None:
        lifecycle = {"postStart": {"exec": {"command": ["no-such-program"]}}}
        await pods.create(
            {**shell("exec sleep 600"), "lifecycle": lifecycle}, terminationGracePeriodSeconds=1
        )
        status = await pods.ended()
        assert status["phase"] == "Failed"
        assert await events(pods, "FailedPostStartHook") == [
            "main: postStart hook: exit code 127: no-such-program: No such file or directory"
        ]

    play(story)
