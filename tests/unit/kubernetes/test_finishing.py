"""Writes whose caller was told to stop."""

import asyncio

import pytest
from aiohttp import web

from vcjob.api.kinds import POD
from vcjob.controller.cluster import Unavailable
from vcjob.kubernetes.errors import Asked
from vcjob.kubernetes.finishing import FinishingConnection, NotOurs
from vcjob.kubernetes.server import Server

ASKED = Asked("create", POD, "default", "a")


async def serve(handler: web.RequestHandler) -> tuple[web.ServerRunner, str]:
    runner = web.ServerRunner(web.Server(handler))  # type: ignore[arg-type]
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


def test_a_write_under_way_ends_though_its_caller_is_cancelled_and_is_waited_for() -> None:
    async def scenario() -> None:
        came, go_on, done = asyncio.Event(), asyncio.Event(), []

        async def handle(request: web.BaseRequest) -> web.Response:
            came.set()
            await go_on.wait()
            done.append(request.method)
            return web.json_response({"kind": "Pod"})

        runner, url = await serve(handle)  # type: ignore[arg-type]
        async with FinishingConnection(Server(url)) as connection:
            caller = asyncio.create_task(connection.request("POST", "/", ASKED, body=b"{}"))
            await came.wait()
            caller.cancel()
            await asyncio.gather(caller, return_exceptions=True)
            assert caller.cancelled()
            assert not done
            go_on.set()
            assert await connection.finish(20) == 0
            assert done == ["POST"]
        await runner.cleanup()

    asyncio.run(scenario())


def test_what_does_not_end_in_time_is_counted_and_given_up() -> None:
    async def scenario() -> None:
        came, go_on = asyncio.Event(), asyncio.Event()

        async def handle(request: web.BaseRequest) -> web.Response:
            came.set()
            await go_on.wait()
            return web.json_response({})

        runner, url = await serve(handle)  # type: ignore[arg-type]
        async with FinishingConnection(Server(url)) as connection:
            caller = asyncio.create_task(connection.request("POST", "/", ASKED, body=b"{}"))
            await came.wait()
            assert await connection.finish(0.01) == 1
            await asyncio.gather(caller, return_exceptions=True)
        go_on.set()
        await runner.cleanup()

    asyncio.run(scenario())


def test_answers_and_errors_reach_a_caller_that_waits() -> None:
    async def scenario() -> None:
        async def handle(request: web.BaseRequest) -> web.Response:
            return web.json_response({}, status=200 if request.path == "/fine" else 500)

        runner, url = await serve(handle)  # type: ignore[arg-type]
        async with FinishingConnection(Server(url)) as connection:
            assert (await connection.request("POST", "/fine", ASKED, body=b"{}")).status == 200
            with pytest.raises(Unavailable, match="500"):
                await connection.request("POST", "/bad", ASKED, body=b"{}")
            assert await connection.finish(1) == 0
        await runner.cleanup()

    asyncio.run(scenario())


def test_nothing_is_written_by_who_may_not_any_more_and_reading_goes_on() -> None:
    async def scenario() -> None:
        came = []

        async def handle(request: web.BaseRequest) -> web.Response:
            came.append(request.method)
            return web.json_response({})

        runner, url = await serve(handle)  # type: ignore[arg-type]
        async with FinishingConnection(Server(url)) as connection:
            connection.may_write = lambda: False
            for method in ("POST", "PATCH", "DELETE"):
                with pytest.raises(NotOurs, match="Lease of this replica"):
                    await connection.request(method, "/", ASKED, body=b"{}")
            await connection.request("GET", "/", ASKED)
            assert came == ["GET"]
        await runner.cleanup()

    asyncio.run(scenario())
