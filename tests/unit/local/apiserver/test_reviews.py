"""Whoever asks who they are and what they may do is answered: everything."""

import asyncio

import pytest
from served import served

ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def ask_of(scenario):
    async def run():
        async with served() as ask:
            return await scenario(ask)

    return asyncio.run(run())


def part(number, data):
    """A field of a protobuf message that is a text or a message."""
    return bytes([number << 3 | 2, len(data)]) + data


def test_everything_is_allowed():
    spec = {"resourceAttributes": {"verb": "create", "resource": "pods"}}

    async def scenario(ask):
        return await ask("POST", ACCESS, {"spec": spec}), await ask("POST", RULES, {})

    access, rules = ask_of(scenario)

    assert (access.code, access.body["status"]["allowed"]) == (201, True)
    assert access.body["spec"] == spec
    assert access.body["kind"] == "SelfSubjectAccessReview"
    assert rules.body["status"]["resourceRules"][0]["verbs"] == ["*"]


def test_who_asks_is_told_who_they_are():
    async def scenario(ask):
        return await ask("POST", SELF, {})

    assert ask_of(scenario).body["status"]["userInfo"]["username"] == "vcjob"


def test_questions_in_protobuf_are_read():
    names = part(1, b"authorization.k8s.io/v1") + part(2, b"SelfSubjectAccessReview")
    attributes = part(1, b"") + part(2, b"create") + part(5, b"pods")
    question = part(1, part(1, b"")) + part(2, part(1, attributes)) + part(3, b"\x08\x00")
    body = b"k8s\x00" + part(1, names) + part(2, question)

    async def scenario(ask):
        return await ask("POST", ACCESS, body, type="application/vnd.kubernetes.protobuf")

    answer = ask_of(scenario)

    assert answer.code == 201
    assert answer.body["spec"] == {"resourceAttributes": {"verb": "create", "resource": "pods"}}


@pytest.mark.parametrize(
    ("method", "path"), [("GET", ACCESS), ("GET", f"{ACCESS}/a"), ("DELETE", ACCESS)]
)
def test_questions_are_not_stored(method, path):
    async def scenario(ask):
        return await ask(method, path)

    assert ask_of(scenario).code == 405


def test_discovery_tells_that_they_can_only_be_asked():
    async def scenario(ask):
        return await ask("GET", "/apis/authorization.k8s.io/v1")

    assert {tuple(one["verbs"]) for one in ask_of(scenario).body["resources"]} == {("create",)}
