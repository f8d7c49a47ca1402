"""An operator that is started while Volcano's controller works."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import aiohttp
import msgspec
import pytest
from played_cluster import TOKEN, Face
from volcanos_leases import hold, renewing

from vcjob.api.kinds import NAMESPACE, QUEUE
from vcjob.controller.cluster import Cluster
from vcjob.controller.readiness import Readiness
from vcjob.kubernetes import beside_volcano, operator
from vcjob.kubernetes.installing.installation import VOLCANO_NAMESPACE
from vcjob.kubernetes.operator_options import OperatorOptions
from vcjob.kubernetes.server import Server
from vcjob.local.apiserver.server import ApiServer
from vcjob.local.apiserver.server import serve as serve_api
from vcjob.local.store import Store
from vcjob.plugins.registry import installed_plugins

OPTIONS = OperatorOptions(
    scheduler="volcano", lease_namespace="default", health_address=("127.0.0.1", 0)
)


class StandingBack(beside_volcano.StandingBack):
    """Looks more often."""

    def __init__(self, cluster: Cluster, readiness: Readiness, *, namespace: str) -> None:
        super().__init__(cluster, readiness, 0.01, namespace=namespace)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "StandingBack", StandingBack)


CONTROLLER = {"lease": beside_volcano.CONTROLLER_LEASE}


@contextlib.asynccontextmanager
async def cluster() -> AsyncIterator[tuple[Store, Server]]:
    """A cluster with the namespace of Volcano."""
    store = Face().store
    for name in ("default", VOLCANO_NAMESPACE):
        await store.create(NAMESPACE, {"metadata": {"name": name}})
    for name in ("root", "default"):
        await store.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1}})
    api = ApiServer(store, TOKEN, plugins=installed_plugins(third_party=False))
    async with serve_api(api, ssl_context=None) as port:
        yield store, Server(url=f"http://127.0.0.1:{port}", name="test", token=TOKEN)


def test_started_by_hand_it_ends_and_says_what_to_do() -> None:
    async def scenario() -> None:
        async with cluster() as (store, server), renewing(store, "controllers-x", **CONTROLLER):
            with pytest.raises(beside_volcano.VolcanoRuns, match="controllers-x holds"):
                await operator.operate(server, OPTIONS)

    asyncio.run(scenario())


async def told(url: str, code: int, words: str) -> str:
    """What /readyz says, once it says this."""
    while True:
        async with aiohttp.request("GET", f"{url}/readyz") as answer:
            text = await answer.text()
        if answer.status == code and words in text:
            return text
        await asyncio.sleep(0.01)


def test_as_a_pod_it_stays_up_says_so_once_and_starts_when_the_lease_is_free(
    caplog: pytest.LogCaptureFixture,
) -> None:
    said = "volcano: Volcano's controller (controllers-x) holds the Lease"

    async def scenario() -> None:
        serving: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        async with cluster() as (store, server):
            async with renewing(store, "controllers-x", **CONTROLLER):
                options = msgspec.structs.replace(OPTIONS, waits_for_volcano=True)
                working = asyncio.create_task(operator.operate(server, options, serving.set_result))
                url = f"http://127.0.0.1:{await serving}"
                waiting = await told(url, 503, said)
                assert "--take-over" in waiting, "what to do stands beside it"
                async with aiohttp.request("GET", f"{url}/healthz") as answer:
                    assert answer.status == 200, "so nobody starts it anew"
                assert not working.done()
            await hold(store, "", **CONTROLLER)
            await told(url, 200, "ready: leads")
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    with caplog.at_level("INFO"):
        asyncio.run(asyncio.wait_for(scenario(), 40))
    assert len([one for one in caplog.messages if one.startswith(said)]) == 1
