"""The way from the fleet to a real member: a port that passes bytes on to another, and can be cut.

Only who comes this way is cut off: the member's own controllers use its port, so what runs there goes on running and ending.
"""

import asyncio
import contextlib
import socket
import threading

_CHUNK = 65536
HOST = "127.0.0.1"


class Line:
    def __init__(self, to_port: int) -> None:
        self._to_port = to_port
        self._cut = False
        self._running = threading.Event()
        self._ends: set[asyncio.StreamWriter] = set()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name=f"line to {to_port}", daemon=True
        )
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]

    def start(self) -> None:
        self._thread.start()
        self._running.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(60)

    def cut(self) -> None:
        """Ends every connection, and each new one at once."""
        self._cut = True
        self._loop.call_soon_threadsafe(self._abort_all)

    def mend(self) -> None:
        self._cut = False

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._running.set()
        async with await asyncio.start_server(self._pass_on, sock=self._listener):
            await self._stopped.wait()
            self._abort_all()

    def _abort_all(self) -> None:
        for end in self._ends:
            end.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._ends.add(writer)
        try:
            if not self._cut:
                member_reader, member_writer = await asyncio.open_connection(HOST, self._to_port)
                self._ends.add(member_writer)
                await asyncio.gather(_copy(reader, member_writer), _copy(member_reader, writer))
                self._ends.discard(member_writer)
        except OSError:
            pass
        finally:
            self._ends.discard(writer)
            writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
    writer.close()
