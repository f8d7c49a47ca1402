"""An API server over a store of its own on a loopback port, and a client that asks it."""

import contextlib
import io
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import msgspec

from vcjob.api.kinds import NAMESPACE, QUEUE
from vcjob.local.apiserver.server import ApiServer, serve
from vcjob.local.store import Store

TOKEN = "a-token-of-tests"
NOW = 1_800_000_000.0
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"


class Answer(msgspec.Struct, frozen=True):
    """What came back; ``body`` is decoded JSON, or the text of anything else."""

    code: int
    body: Any
    headers: Mapping[str, str]

    @property
    def reason(self) -> str:
        return str(self.body.get("reason", ""))


class Asking:
    """A client of one server."""

    def __init__(self, session: aiohttp.ClientSession, server: ApiServer, store: Store) -> None:
        self.session = session
        self.server = server
        self.store = store
        self.url = f"http://127.0.0.1:{server.port}"

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        **query: str,
    ) -> Answer:
        data = body if isinstance(body, bytes | None) else msgspec.json.encode(body)
        data = io.BytesIO(data) if data is not None else None  # which aiohttp takes of any size
        sent = {"Content-Type": type, **(headers or {})}
        async with self.session.request(
            method, self.url + path, data=data, headers=sent, params=query
        ) as response:
            read = await response.read()
            is_json = response.content_type == "application/json"
            answer = msgspec.json.decode(read) if is_json else read.decode()
            return Answer(response.status, answer, response.headers.copy())

    async def made(self, path: str, *objects: Mapping[str, Any]) -> list[Any]:
        """Create objects that the server must take; returns them as stored."""
        answers = [await self("POST", path, obj) for obj in objects]
        assert [answer.code for answer in answers] == [201] * len(objects), answers
        return [answer.body for answer in answers]

    @contextlib.asynccontextmanager
    async def watching(self, path: str, **query: str) -> AsyncIterator["Watched"]:
        """A watch of a collection."""
        async with self.session.get(self.url + path, params={"watch": "1", **query}) as response:
            assert response.status == 200, await response.text()
            yield Watched(response)


class Watched:
    """The events of a watch, one at a time."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> tuple[str, Any]:
        """Type and object of the next event; ("", None) at the end."""
        line = await self._response.content.readline()
        if not line:
            return "", None
        event = msgspec.json.decode(line)
        return event["type"], event["object"]


@contextlib.asynccontextmanager
async def served(**options: Any) -> AsyncIterator[Asking]:
    """A server with what every engine has; ``options`` are those of ApiServer, and ``store``."""
    store = options.pop("store", None) or Store(lambda: NOW)
    for name in ("default", "kube-system"):
        await store.create(NAMESPACE, {"metadata": {"name": name}})
    for name in ("root", "default"):
        await store.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1}})
    server = ApiServer(store, TOKEN, clock=lambda: NOW, **options)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        serve(server, ssl_context=None),
        aiohttp.ClientSession(headers=headers, auto_decompress=True) as session,
    ):
        yield Asking(session, server, store)


def config_map(name: str, **data: str) -> dict[str, Any]:
    """A ConfigMap."""
    return {"metadata": {"name": name}, "data": data}


def pod(name: str, **labels: str) -> dict[str, Any]:
    """A pod of one container."""
    spec = {"containers": [{"name": "main", "image": "busybox"}]}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def job(name: str, **spec: Any) -> dict[str, Any]:
    """A Job of two pods."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}}
    task = {"name": "worker", "replicas": 2, "template": template}
    return {"metadata": {"name": name}, "spec": {"tasks": [task], **spec}}
