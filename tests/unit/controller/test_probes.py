"""What probes get."""

import asyncio

import aiohttp
import pytest

from vcjob.controller.probes import AddressInUse, serve_probes
from vcjob.controller.readiness import Readiness

ANY = ("127.0.0.1", 0)


def test_probes_tell_in_plain_words_how_it_is() -> None:
    async def scenario() -> None:
        readiness, wrong = Readiness(expected=("server",)), [""]
        measured: list[bytes | None] = [b"vcjob_leader 1.0\n"]
        looks: list[bool] = []
        serving = serve_probes(
            ANY,
            readiness,
            lambda: measured[0],
            stuck=lambda: wrong[0],
            refresh=lambda: looks.append(True),
        )
        async with (
            serving as port,
            aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
        ):

            async def ask(path: str) -> tuple[int, str]:
                async with session.get(path) as response:
                    return response.status, await response.text()

            assert await ask("/healthz") == (200, "ok\n")
            wrong[0] = "the controller has not moved for 400 s"
            assert await ask("/healthz") == (500, "the controller has not moved for 400 s\n")
            code, text = await ask("/readyz")
            assert (code, text.splitlines()[0]) == (503, "not ready")
            assert text.splitlines()[1].startswith("server: not known yet: ")
            readiness.meet("server")
            assert await ask("/readyz") == (200, "ready\n")
            assert len(looks) == 2, "each answer is as of now"
            assert await ask("/metrics") == (200, "vcjob_leader 1.0\n")
            measured[0] = None
            status, text = await ask("/metrics")
            assert (status, "vcjob[operator]" in text) == (404, True)
            assert (await ask("/"))[0] == 404

    asyncio.run(scenario())


def test_an_address_that_is_taken_is_said_with_the_flag_that_helps() -> None:
    async def scenario() -> None:
        def nothing() -> None:
            return None

        async with serve_probes(ANY, Readiness(), nothing) as port:
            with pytest.raises(AddressInUse, match=rf"127\.0\.0\.1:{port}.*--health-address"):
                async with serve_probes(("127.0.0.1", port), Readiness(), nothing):
                    raise AssertionError("two listen")

    asyncio.run(scenario())
