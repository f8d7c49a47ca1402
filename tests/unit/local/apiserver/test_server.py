"""Who is answered, and what is answered when nothing can be."""

import asyncio

import aiohttp
import pytest
from served import JOBS, MAPS, PODS, TOKEN, config_map, job, pod, served
from yarl import URL

OTHER_HOSTS = (
    *("evil.example:{port}", "evil.example", "127.0.0.1.evil.example:{port}", "127.0.0.2:{port}"),
    *("", ":{port}", "127.0.0.1:{port}.evil.example", "127.0.0.1:x", "evil.example:1@127.0.0.1"),
)


def test_a_request_without_the_token_is_told_nothing():
    async def scenario():
        async with served() as ask:
            return [
                await ask("GET", path, headers={"Authorization": given})
                for path in ("/version", "/healthz", PODS, "/api", "/nothing")
                for given in ("", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer ", "Bearer \xff")
            ]

    answers = asyncio.run(scenario())

    assert {(answer.code, answer.reason) for answer in answers} == {(401, "Unauthorized")}


@pytest.mark.parametrize("name", ["token", "access_token", "authorization"])
def test_a_token_in_a_url_is_none(name):
    async def scenario():
        async with served() as ask, aiohttp.ClientSession() as stranger:
            url = f"{ask.url}/version"
            async with stranger.get(url, params={name: f"Bearer {TOKEN}"}) as said:
                first = said.status
            async with stranger.get(url, params={name: TOKEN}) as said:
                return first, said.status

    assert asyncio.run(scenario()) == (401, 401)


def test_every_refusal_has_details_which_kubectl_reads_without_looking():
    async def scenario():
        async with served() as ask:
            await ask.made(PODS, pod("p"))
            paths = (f"{PODS}/p/ephemeralcontainers", f"{PODS}/q", "/apis/nothing")
            answers = []
            for path in paths:
                async with ask.session.get(f"{ask.url}{path}") as response:
                    answers.append(await response.json())
            return answers

    for answer in asyncio.run(scenario()):
        assert isinstance(answer["details"], dict), answer


@pytest.mark.parametrize("host", OTHER_HOSTS)
def test_a_request_for_another_host_is_refused_although_it_has_the_token(host):
    async def scenario():
        async with served() as ask:
            return await ask("GET", PODS, headers={"Host": host.format(port=ask.server.port)})

    assert asyncio.run(scenario()).code == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "engine.example"])
def test_names_of_this_machine_and_those_that_are_given_are_answered(host):
    async def scenario():
        async with served(hosts=["engine.example"]) as ask:
            ports = (f":{ask.server.port}", ":9000", "")  # a tunnel has a port of its own
            return [
                (await ask("GET", PODS, headers={"Host": f"{host}{port}"})).code for port in ports
            ]

    assert asyncio.run(scenario()) == [200, 200, 200]


@pytest.mark.parametrize(
    "path",
    ["/..%2f..", "/%2e%2e", "/a%2Fb", "/a%00b", "/a%252fb", "/%ff", "/a%0Ab"],
)
def test_names_that_mean_something_to_a_file_system_are_refused(path):
    async def scenario():
        async with served() as ask:
            url = f"{ask.url}{MAPS}{path}"
            async with ask.session.get(URL(url, encoded=True)) as response:
                return response.status, (await response.json())["kind"]

    assert asyncio.run(scenario()) == (400, "Status")


def test_a_body_of_more_than_three_megabytes_is_refused_and_the_server_goes_on():
    async def scenario():
        async with served() as ask:
            big = config_map("big", x="y" * (3 * 1024 * 1024))
            refused = await ask("POST", MAPS, big)
            return refused, await ask("POST", MAPS, config_map("small"))

    refused, taken = asyncio.run(scenario())

    assert (refused.code, refused.reason) == (413, "RequestEntityTooLarge")
    assert taken.code == 201


def test_a_long_body_without_a_length_is_refused_too():
    async def pieces():
        for _ in range(64):
            yield b"x" * 65536

    async def scenario():
        async with (
            served() as ask,
            ask.session.post(ask.url + MAPS, data=pieces()) as response,
        ):
            return response.status

    assert asyncio.run(scenario()) == 413


MALFORMED = {
    "no JSON": b"{",
    "a list": b"[]",
    "a number": b"1",
    "not UTF-8": b'{"a": "\xff"}',
    "too deep": b'{"a":' * 200 + b"1" + b"}" * 200,
    "much too deep": b"[" * 100_000,
    "nothing": b"",
    "NaN": b'{"a": NaN}',
    "metadata that is a text": b'{"metadata": "x"}',
    "a name that is a number": b'{"metadata": {"name": 1}}',
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_body_is_the_fault_of_its_sender(body):
    async def scenario():
        async with served() as ask:
            return [await ask("POST", path, body) for path in (MAPS, JOBS, PODS)]

    for answer in asyncio.run(scenario()):
        assert answer.code in (400, 422), answer
        assert answer.body["status"] == "Failure"
        assert answer.body["message"]


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/apis/batch/v1/namespaces/default/jobs", 404),
        ("GET", "/api/v1/namespaces/default/nothing", 404),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("GET", "/api/v1/pods/a", 404),
        ("GET", f"{PODS}/a/nothing", 404),
        ("GET", f"{MAPS}/a/status", 404),
        ("GET", f"{MAPS}/absent", 404),
        ("POST", f"{MAPS}/a", 405),
        ("PUT", MAPS, 405),
        ("DELETE", "/api/v1/configmaps", 405),
        ("POST", "/api/v1/configmaps", 405),
        ("POST", "/version", 405),
    ],
)
def test_what_is_not_served_is_answered_with_a_status(method, path, code):
    async def scenario():
        async with served() as ask:
            return await ask(method, path, {"metadata": {"name": "a"}})

    answer = asyncio.run(scenario())

    assert (answer.code, answer.body["code"]) == (code, code)


def test_a_job_is_not_scaled_as_a_whole_and_the_answer_says_how():
    async def scenario():
        async with served() as ask:
            await ask.made(JOBS, job("train"))
            return await ask("GET", f"{JOBS}/train/scale")

    answer = asyncio.run(scenario())

    assert answer.code == 403
    assert "vcjob scale train TASK=N" in answer.body["message"]


def test_a_door_of_pods_answers_for_its_subresource_and_none_is_served_without():
    async def logs(request, place, asked):
        return aiohttp.web.Response(text=f"{place.name} {asked['container']}")

    async def scenario():
        async with served(doors={"log": logs}) as ask:
            await ask.made(PODS, pod("p"))
            found = await ask("GET", f"{PODS}/p/log", container="main")
            return found, await ask("GET", f"{PODS}/p/exec", container="main")

    found, other = asyncio.run(scenario())

    assert (found.code, found.body) == (200, "p main")
    assert other.code == 404


def test_a_url_may_be_as_long_as_the_command_of_an_exec():
    async def scenario():
        async with served() as ask:
            return await ask("GET", MAPS, labelSelector=",".join(["a=b"] * 50_000))

    answer = asyncio.run(scenario())

    assert (answer.code, answer.body["items"]) == (200, [])


def test_health_is_told_in_one_word():
    async def scenario():
        async with served() as ask:
            return [await ask("GET", path) for path in ("/healthz", "/livez", "/readyz/ping")]

    assert [(answer.code, answer.body) for answer in asyncio.run(scenario())] == [(200, "ok")] * 3


def test_protobuf_is_refused_as_body_of_a_pod_and_as_the_only_answer():
    protobuf = "application/vnd.kubernetes.protobuf"

    async def scenario():
        async with served() as ask:
            return (
                await ask("POST", PODS, b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod", type=protobuf),
                await ask("GET", MAPS, headers={"Accept": protobuf}),
                await ask("GET", MAPS, headers={"Accept": f"{protobuf}, application/json"}),
            )

    body, answer, choice = asyncio.run(scenario())

    assert (body.code, body.reason) == (415, "UnsupportedMediaType")
    assert (answer.code, answer.reason) == (406, "NotAcceptable")
    assert choice.code == 200


def test_an_answer_can_be_yaml_and_so_can_a_body():
    async def scenario():
        async with served() as ask:
            text = b"metadata:\n  name: a\ndata:\n  x: 'yes'\n"
            made = await ask("POST", MAPS, text, type="application/yaml")
            return made, await ask("GET", f"{MAPS}/a", headers={"Accept": "application/yaml"})

    made, found = asyncio.run(scenario())

    assert made.body["data"] == {"x": "yes"}
    assert found.body.startswith("apiVersion: v1\n")
    assert "  x: 'yes'\n" in found.body
