"""Requests: credentials, what failures mean, TLS, WebSockets that are refused."""

import asyncio
import socket
import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from canned_server import Canned, canned_server
from tunnels import Handshake, connect, socks, socks_refuses, tunnel

from vcjob.api.kinds import JOB, POD, QUEUE, Kind
from vcjob.controller.certificates import make_certificate
from vcjob.controller.cluster import (
    AlreadyExists,
    ClusterError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Unavailable,
)
from vcjob.kubernetes.connection import Connection, object_path
from vcjob.kubernetes.credentials import Credentials
from vcjob.kubernetes.errors import (
    Asked,
    KubeconfigError,
    NoCredentials,
    NotServed,
    NotTrusted,
    Unauthorized,
    Unreachable,
)
from vcjob.kubernetes.routes import proxy_of
from vcjob.kubernetes.server import Files, Server

GET = Asked("get", POD, "default", "p")


async def ask(server: Server, asked: Asked = GET, seconds: float = 20) -> bytes:
    async with Connection(server) as connection:
        return (await connection.request("GET", "/x", asked, seconds=seconds)).body


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ((POD, "a", "b"), "/api/v1/namespaces/a/pods/b"),
        ((POD,), "/api/v1/pods"),
        ((JOB, "a", "b", "status"),
         "/apis/batch.volcano.sh/v1alpha1/namespaces/a/jobs/b/status"),
        ((QUEUE, "ignored", "q"), "/apis/scheduling.volcano.sh/v1beta1/queues/q"),
        ((POD, "a", "../../secrets?x=#"), "/api/v1/namespaces/a/pods/..%2F..%2Fsecrets%3Fx%3D%23"),
    ],
)  # fmt: skip
def test_paths(arguments: tuple[Any, ...], path: str) -> None:
    assert object_path(*arguments) == path


def test_credentials_go_into_headers_and_names_stay_escaped() -> None:
    async def story() -> None:
        async with canned_server() as canned:
            for more in (
                {"token": "t", "impersonate": (("Impersonate-User", "me"),)},
                {"basic": ("user", "pass")},
            ):
                canned.say({})
                async with Connection(canned.server(**more)) as connection:
                    path = object_path(POD, "a", "b/c")
                    await connection.request("GET", path, GET, query=[("labelSelector", "a=b,c")])
            first, second = canned.asked
            assert first.headers["Authorization"] == "Bearer t"
            assert first.headers["Impersonate-User"] == "me"
            assert first.headers["User-Agent"].startswith("vcjob/")
            assert first.path == "/api/v1/namespaces/a/pods/b%2Fc"
            assert first.query == {"labelSelector": "a=b,c"}
            assert second.headers["Authorization"] == "Basic dXNlcjpwYXNz"

    asyncio.run(story())


@pytest.mark.parametrize(
    ("status", "reason", "message", "expected", "said"),
    [
        (401, "Unauthorized", "Unauthorized", Unauthorized, "does not know us (401)"),
        (403, "Forbidden", 'User "x" cannot get resource "pods" in API group ""', Forbidden,
         'does not let us get pods "p" in namespace "default": User "x"'),
        (403, "Forbidden", "exceeded quota: q", Forbidden, "exceeded quota: q"),
        (409, "AlreadyExists", 'pods "p" already exists', AlreadyExists, "already exists"),
        (409, "Conflict", "the object has been modified", Conflict, "has been modified"),
        (410, "Expired", "too old resource version", Gone, "too old"),
        (422, "Invalid", "spec.x: Required", Invalid, "spec.x: Required"),
        (400, "BadRequest", "bad", Invalid, "bad"),
        (413, "RequestEntityTooLarge", "limit is 3145728", Invalid, "limit"),
        (500, "InternalError", "boom", Unavailable, "failed to get pods"),
        (503, "ServiceUnavailable", "", Unavailable, "(503)"),
        (504, "Timeout", "Too large resource version", Unavailable, "Too large"),
    ],
)  # fmt: skip
def test_what_a_refusal_means(
    status: int, reason: str, message: str, expected: type[ClusterError], said: str
) -> None:
    async def story() -> None:
        async with canned_server() as canned:
            canned.refuse(status, reason, message)
            with pytest.raises(expected) as caught:
                await ask(canned.server(token="t"))
            assert type(caught.value) is expected
            assert said in str(caught.value)

    asyncio.run(story())


def test_another_object_of_the_name_is_a_conflict() -> None:
    async def story() -> None:
        async with canned_server() as canned:
            causes = [{"field": "metadata.uid", "message": "field is immutable"}]
            canned.refuse(422, "Invalid", "metadata.uid: field is immutable", causes=causes)
            with pytest.raises(Conflict):
                await ask(canned.server())

    asyncio.run(story())


@pytest.mark.parametrize(
    ("headers", "details", "seconds"),
    [({"Retry-After": "7"}, {}, 7.0), ({}, {"retryAfterSeconds": 3}, 3.0), ({}, {}, None)],
)
def test_too_many_requests_say_when_to_come_back(
    headers: dict[str, str], details: dict[str, Any], seconds: float | None
) -> None:
    async def story() -> None:
        async with canned_server() as canned:
            canned.say({"kind": "Status", "details": details}, 429, headers)
            with pytest.raises(Unavailable, match="too much to do") as caught:
                await ask(canned.server())
            assert caught.value.retry_after == seconds

    asyncio.run(story())


@pytest.mark.parametrize(
    ("body", "kind", "expected", "said"),
    [
        ({"details": {"name": "p"}, "message": 'pods "p" not found'}, POD, NotFound, '"p" not'),
        ("404 page not found", JOB, NotServed, "does not serve jobs.batch.volcano.sh"),
        ({"details": {}, "message": "the server could not find"}, JOB, NotServed, "installed?"),
    ],
)
def test_a_kind_that_is_not_served_is_told_from_an_object_that_is_not_there(
    body: Any, kind: Kind, expected: type[ClusterError], said: str
) -> None:
    async def story() -> None:
        async with canned_server() as canned:
            canned.say(body, 404)
            with pytest.raises(expected) as caught:
                await ask(canned.server(), Asked("get", kind, "default", "p"))
            assert said in str(caught.value)

    asyncio.run(story())


def test_a_refused_token_is_read_again_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")

    async def story() -> None:
        async with canned_server() as canned:

            async def rotate(_: web.Request) -> web.StreamResponse:
                file.write_text("new")
                return web.Response(status=401)

            canned.call(rotate)
            canned.say({"fine": True})
            files = Files(token=str(file))
            assert await ask(canned.server(files=files)) == b'{"fine": true}'
            sent = [asked.headers["Authorization"] for asked in canned.asked]
            assert sent == ["Bearer old", "Bearer new"]
            canned.refuse(401, "Unauthorized", "Unauthorized")
            canned.refuse(401, "Unauthorized", "Unauthorized")
            with pytest.raises(Unauthorized):
                await ask(canned.server(files=files))

    asyncio.run(story())


def test_a_credential_that_cannot_be_had_now_may_be_had_later(tmp_path: Path) -> None:
    """A token file is replaced while the operator runs: that must not end it."""

    async def story() -> None:
        async with canned_server() as canned:
            server = canned.server(files=Files(token=str(tmp_path / "token")))
            async with Connection(server) as connection:
                with pytest.raises(NoCredentials, match="cannot be read"):
                    await connection.request("GET", "/x", GET)
                (tmp_path / "token").write_text("late")
                canned.say({})
                await connection.request("GET", "/x", GET)
            assert canned.asked[0].headers["Authorization"] == "Bearer late"

    asyncio.run(story())


def test_nothing_listens_there() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(Unreachable, match=f"nothing answers at {url}: connection refused$"):
            asyncio.run(ask(Server(url)))


def test_a_connection_that_breaks_leaves_open_whether_it_was_done() -> None:
    async def story(canned: Canned) -> None:
        canned.break_off()
        async with Connection(canned.server()) as connection:
            said = "broke when asked to create pods: the server closed it"
            with pytest.raises(Unavailable, match=said) as caught:
                await connection.request("POST", "/x", Asked("create", POD), body=b"{}")
        assert not isinstance(caught.value, Unreachable)
        assert len(canned.asked) == 1, "a write must not be sent twice"

    async def run() -> None:
        async with canned_server() as canned:
            await story(canned)

    asyncio.run(run())


def test_an_answer_that_does_not_come_is_given_up() -> None:
    async def story() -> None:
        async with canned_server() as canned:
            stuck = asyncio.Event()

            async def wait(_: web.Request) -> web.StreamResponse:
                await stuck.wait()
                return web.Response()

            canned.call(wait)
            with pytest.raises(Unavailable, match="did not answer in time"):
                await ask(canned.server(), seconds=0.05)
            stuck.set()

    asyncio.run(story())


def test_redirects_are_not_followed_with_our_credentials() -> None:
    async def story() -> None:
        async with canned_server() as canned:
            canned.say("", 302, {"Location": "http://127.0.0.1:1/"})
            with pytest.raises(ClusterError, match="answered 302"):
                await ask(canned.server(token="t"))

    asyncio.run(story())


def test_a_proxy_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(KubeconfigError, match="socks4://x:1 of lab is of a kind"):
        Connection(Server("https://lab", "lab", proxy="socks4://x:1"))


def test_a_port_that_is_none_is_refused() -> None:
    with pytest.raises(KubeconfigError, match="https://lab:many is not the URL of a server"):
        Connection(Server("https://lab:many"))


def test_a_proxy_is_used() -> None:
    async def story() -> None:
        async with canned_server() as canned:
            canned.say({})
            await ask(Server("http://far.invalid:80", proxy=canned.url))
            assert canned.asked[0].headers["Host"] == "far.invalid"

    asyncio.run(story())


@pytest.mark.parametrize(
    ("url", "exempt", "straight"),
    [
        ("https://10.96.0.1:443", "localhost,10.96.0.0/12,.svc", True),
        ("https://11.96.0.1:443", "10.96.0.0/12", False),
        ("https://[fd00::1]:443", "fd00::/8", True),
        ("https://[fd00::1]:443", "[fd00::1]:443", True),
        ("https://[fd00::1]:443", "fd00::1", True),
        ("https://[fd00::1]:443", "[fd00::1]", True),
        ("https://10.96.0.1:443", "10.96.0.1", True),
        ("https://10.96.0.1", "10.96.0.1:443", True),
        ("https://10.96.0.1:6443", "10.96.0.1:443", False),
        ("https://api.lab.corp:6443", " LAB.corp ", True),
        ("https://api.lab.corp:6443", ".corp", True),
        ("https://api.lab.corp:6443", "*.corp", True),
        ("https://lab.corp:6443", "lab.corp:6443", True),
        ("https://lab.corp:6443", ".lab.corp", False),
        ("https://collab.corp:6443", "lab.corp", False),
        ("https://lab.corp:6443", "*", True),
        ("https://lab.corp:6443", "10.0.0.0/8,no/range,,", False),
    ],
)
def test_the_environment_says_which_servers_are_reached_without_a_proxy(
    monkeypatch: pytest.MonkeyPatch, url: str, exempt: str, straight: bool
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "proxy.corp:3128")
    monkeypatch.setenv("NO_PROXY", exempt)
    for name in ("https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert proxy_of(Server(url)) == (None if straight else "http://proxy.corp:3128")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for the name ``inside`` with its key, in one file."""
    return self_signed(tmp_path_factory.mktemp("tls"))


def self_signed(directory: Path) -> Path:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=inside", "-addext", "subjectAltName=DNS:inside",
         "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=directory, check=True, capture_output=True,
    )  # fmt: skip
    both = directory / "both.pem"
    both.write_text((directory / "cert.pem").read_text() + (directory / "key.pem").read_text())
    return both


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"authority": True, "tls_name": "inside"}, ""),
        ({"unverified": True}, ""),
        ({"authority": True}, "is not valid for '127.0.0.1'"),
        ({"tls_name": "inside"}, "self-signed certificate"),
        ({"authority": True, "tls_name": "inside", "client": "own"}, ""),
        ({"authority": True, "tls_name": "inside", "client": "bad"}, "does not fit its key"),
        ({"authority": "with a comment", "tls_name": "inside"}, ""),
        ({"authority": "no pem"}, "is not a certificate in PEM"),
    ],
)
def test_tls(certificate: Path, options: dict[str, Any], said: str) -> None:
    text = certificate.read_text()
    cut = text.index("-----BEGIN PRIVATE")
    options = dict(options)
    if options.get("authority") is True:
        options["authority"] = text[:cut]
    elif options.get("authority") == "with a comment":
        options["authority"] = f"# Zürich\n{text[:cut]}"
    if client := options.pop("client", ""):
        options |= {"certificate": text[:cut], "key": text[cut:] if client == "own" else "bad"}

    async def story() -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=text[:cut])
        context.load_cert_chain(certificate)
        context.verify_mode = ssl.CERT_REQUIRED if client == "own" else ssl.CERT_NONE
        async with canned_server(context) as canned:
            canned.say({"fine": True})
            if not said:
                assert await ask(canned.server(**options)) == b'{"fine": true}'
                return
            with pytest.raises((NotTrusted, NoCredentials)) as caught:
                await ask(canned.server(**options))
            assert said in str(caught.value)

    asyncio.run(story())


def test_certificates_that_are_replaced_while_we_run_are_used(tmp_path: Path) -> None:
    """Also when one of the two files is written before the other, and many times over."""
    names = ("authority", "certificate", "key")
    paths = [tmp_path / name for name in names]
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.verify_mode = ssl.CERT_REQUIRED

    def replace() -> str:
        """Replace the server's certificate, and ours but for its key, which is returned."""
        both = self_signed(tmp_path)
        text = both.read_text()
        cut = text.index("-----BEGIN PRIVATE")
        context.load_cert_chain(both)
        context.load_verify_locations(cadata=text[:cut])
        for path in paths[:2]:
            path.write_text(text[:cut])
        return text[cut:]

    async def story() -> None:
        async with canned_server(context) as canned:
            server = canned.server(files=Files(*map(str, paths)), tls_name="inside")
            credentials = Credentials(server)
            async with Connection(server, credentials) as connection:
                for round_ in range(4):
                    key = replace()
                    if round_:
                        credentials.refuse(await credentials.current())  # as after a minute
                        with pytest.raises(NoCredentials, match="does not fit its key"):
                            await connection.request("GET", "/x", GET)
                    paths[2].write_text(key)
                    canned.say({"round": round_})
                    answer = await connection.request("GET", "/x", GET)
                    assert answer.body == b'{"round": %d}' % round_

    asyncio.run(story())


@pytest.mark.parametrize(("scheme", "handshake"), [("http", connect), ("socks5", socks)])
def test_tls_through_a_proxy(certificate: Path, scheme: str, handshake: Handshake) -> None:
    text = certificate.read_text()

    async def story() -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        async with canned_server(context) as canned:
            port = int(canned.url.rpartition(":")[2])
            async with tunnel(handshake, port) as (own, asked):
                through = {"proxy": f"{scheme}://127.0.0.1:{own}"}
                good = {**through, "authority": text[: text.index("-----BEGIN PRIVATE")]}
                canned.say({})
                await ask(Server("https://inside:6443", **good))
                assert asked == ["inside:6443"]
                with pytest.raises(NotTrusted, match="certificate of https://other:6443 is not to"):
                    await ask(Server("https://other:6443", **good))
                with pytest.raises(NotTrusted, match="self-signed certificate"):
                    await ask(Server("https://inside:6443", **through))
                named = Server("https://10.0.0.1:6443", **good, tls_name="inside")
                if handshake is socks:
                    with pytest.raises(NoCredentials, match="tls-server-name cannot be used"):
                        await ask(named)
                    return
                canned.say({})
                await ask(named)

    asyncio.run(story())


def test_a_socks_proxy_that_does_not_get_there_is_said() -> None:
    async def story() -> None:
        async with tunnel(socks_refuses, 1) as (own, _):
            server = Server("http://lab:6443", proxy=f"socks5://127.0.0.1:{own}")
            with pytest.raises(Unreachable, match=f":{own} does not reach http://lab:6443: "):
                await ask(server)
        with pytest.raises(Unreachable, match="does not reach http://lab:6443: connection refused"):
            await ask(server)

    asyncio.run(story())


@pytest.mark.parametrize("cuts", [True, False], ids=["cuts", "401"])
@pytest.mark.parametrize("days", [1, 60], ids=["expired", "good"])
def test_that_our_certificate_has_expired_is_said_where_the_server_does_not_take_it(
    certificate: Path, cuts: bool, days: int
) -> None:
    month_ago = datetime.now(UTC) - timedelta(days=30)
    ours = make_certificate(["me"], month_ago, owner="me", valid=timedelta(days=days))

    async def story() -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        context.verify_mode = ssl.CERT_REQUIRED if cuts else ssl.CERT_NONE
        async with canned_server(context) as canned:
            canned.say({"message": "Unauthorized"}, 401)
            server = canned.server(
                unverified=True, certificate=ours.certificate.decode(), key=ours.key.decode()
            )
            with pytest.raises(Unavailable if cuts else Unauthorized) as caught:
                await ask(server)
            expired = f"our client certificate expired on {month_ago + timedelta(days=1):%Y-%m-%d}"
            assert (expired in str(caught.value)) is (days == 1)

    asyncio.run(story())
