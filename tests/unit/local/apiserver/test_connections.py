"""What connections cost."""

import asyncio
import gc
import tracemalloc
from pathlib import Path

from served import TOKEN

from vcjob.local.apiserver.server import ApiServer, serve
from vcjob.local.service.credentials import credentials
from vcjob.local.service.home import EngineHome
from vcjob.local.store import Store

NUMBER = 50


async def _growth(home: EngineHome) -> float:
    """Bytes that the server takes for a connection that says nothing."""
    context = credentials(home, ()).server_context()
    server = ApiServer(Store(lambda: 0.0), TOKEN)
    async with serve(server, ssl_context=context) as port:
        writers = []
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(NUMBER):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writers.append(writer)
            await asyncio.sleep(0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"no TLS\n")  # to be turned away behind all others
        await reader.read()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        for one in (*writers, writer):
            one.close()
    return (after - before) / NUMBER


def test_a_connection_that_says_nothing_costs_little(tmp_path: Path) -> None:
    home = EngineHome(tmp_path / "engine")
    home.make()

    assert asyncio.run(_growth(home)) < 100 * 1024


def test_a_connection_that_asks_nothing_is_closed() -> None:
    asked = f"GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"

    async def scenario() -> None:
        server = ApiServer(Store(lambda: 0.0), TOKEN)
        async with serve(server, ssl_context=None, silent_seconds=0.2) as port:
            asking = await asyncio.open_connection("127.0.0.1", port)
            silent = await asyncio.open_connection("127.0.0.1", port)
            try:
                asking[1].write(asked.encode())
                await asking[0].readuntil(b"200 OK")
                assert await silent[0].read() == b""
                asking[1].write(asked.encode())
                await asking[0].readuntil(b"200 OK")
            finally:
                for _, writer in (asking, silent):
                    writer.close()
                    await writer.wait_closed()

    asyncio.run(asyncio.wait_for(scenario(), 60))
