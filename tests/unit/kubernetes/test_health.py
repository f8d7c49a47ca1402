"""What probes get."""

import asyncio

import aiohttp
import pytest

from vcjob.kubernetes.health import AddressInUse, serve_health
from vcjob.kubernetes.operator_metrics import OperatorMetrics
from vcjob.kubernetes.readiness import Condition, Readiness


def test_probes_tell_in_plain_words_how_it_is() -> None:
    async def scenario() -> None:
        readiness, wrong = Readiness(), [""]
        async with (
            serve_health(("127.0.0.1", 0), readiness, OperatorMetrics(), lambda: wrong[0]) as port,
            aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
        ):

            async def ask(path: str) -> tuple[int, str]:
                async with session.get(path) as response:
                    return response.status, await response.text()

            assert await ask("/healthz") == (200, "ok\n")
            wrong[0] = "the controller has not moved for 400 s"
            assert await ask("/healthz") == (500, "the controller has not moved for 400 s\n")
            assert await ask("/readyz") == (503, "not ready\nserver: not asked yet\n")
            readiness.meet(Condition.SERVER)
            assert await ask("/readyz") == (200, "ready: starting\n")
            status, text = await ask("/metrics")
            assert status == 200
            assert "vcjob_build_info{" in text
            assert (await ask("/"))[0] == 404

    asyncio.run(scenario())


def test_an_address_that_is_taken_is_said_with_the_flag_that_helps() -> None:
    async def scenario() -> None:
        arguments = (Readiness(), OperatorMetrics(), str)
        async with serve_health(("127.0.0.1", 0), *arguments) as port:
            with pytest.raises(AddressInUse, match=rf"127\.0\.0\.1:{port}.*--health-address"):
                async with serve_health(("127.0.0.1", port), *arguments):
                    raise AssertionError("two listen")

    asyncio.run(scenario())
