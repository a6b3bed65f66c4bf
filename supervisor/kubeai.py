"""Gives notice to a process that uses kubeai: ``GET /stop`` as bytes, to which it answers the bytes ``ok`` and no status line.

Its server is single-threaded: a client that keeps a connection blocks every notice, so this one sends at once and leaves.
"""

import asyncio
import contextlib

from supervisor.core.facts import PORT

REQUEST = b"GET /stop HTTP/1.0\r\n\r\n"
TIMEOUT_S = 2.0


async def notify(address: str, port: int = PORT) -> bool:
    """Whether the process has heard it. Never raises for what the other side does."""
    if not address:
        return False
    try:
        async with asyncio.timeout(TIMEOUT_S):
            reader, writer = await asyncio.open_connection(address, port)
            try:
                writer.write(REQUEST)
                await writer.drain()
                return (await reader.readexactly(2)) == b"ok"
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return False
