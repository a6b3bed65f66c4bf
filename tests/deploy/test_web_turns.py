"""The web process begins connections in turns of their addresses, as the Kubernetes-style API does."""

import asyncio
from contextlib import closing

from deploy.config import web
from deploy.config.http import Arrivals


def test_the_loop_of_the_web_process_begins_connections_in_turns() -> None:
    factory = web.config(0).get_loop_factory()
    assert factory is not None
    with closing(factory()) as loop:

        async def served() -> bool:
            server = await loop.create_server(asyncio.Protocol, host="127.0.0.1", port=0, backlog=100)
            server.close()
            return isinstance(server, Arrivals)

        assert loop.run_until_complete(served())
