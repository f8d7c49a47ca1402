"""Requests that go on for as long as their clients like, when the server ends."""

import asyncio

import pytest
from aiohttp import ClientError, web
from served import MAPS, PODS, served


@pytest.mark.parametrize("path", [MAPS, f"{PODS}/p/log"])
def test_the_end_of_the_server_ends_them_at_once(path: str) -> None:
    async def door(request: web.BaseRequest, place: object, asked: object) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.Event().wait()
        return response

    async def run() -> bool:
        async with served(doors={"log": door}) as ask:
            async with ask.session.get(f"{ask.url}{path}", params={"watch": "1"}) as response:
                assert response.status == 200
                ask.server.end_lasting()
                with pytest.raises(ClientError):
                    await response.content.read()
            return (await ask("GET", MAPS)).code == 200  # others are still answered

    assert asyncio.run(asyncio.wait_for(run(), 10))
