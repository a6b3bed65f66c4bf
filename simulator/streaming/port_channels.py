"""Ports of a pod at clients that speak no SPDY: the messages of a WebSocket (``v4.channel.k8s.io``) are numbered channels.

The port at place ``i`` of the request has channel ``2i`` for data and ``2i + 1`` for errors. Each begins with the port,
as two bytes. There is one connection to each port; the stream is over when all of them are. So kubelets speak with the Python
clients; kubectl speaks SPDY (`forwarding`).
"""

import asyncio
import socket
from collections.abc import Callable, Sequence

from simulator.streaming import websocket
from simulator.streaming.forwarding import Carrier, Pipe
from simulator.streaming.source import NotEntered


class PortChannels(Carrier):
    def __init__(self, connect: Callable[[int], socket.socket], ports: Sequence[int]) -> None:
        """``connect`` blocks for a moment."""
        super().__init__()
        self._connect, self._ports = connect, ports
        self._reader = websocket.Reader()
        self._pipes = {2 * place: Pipe(self, 2 * place) for place in range(len(ports))}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        for channel, port in zip(list(self._pipes), self._ports, strict=True):
            for each in (channel, channel + 1):
                self.send(each, port.to_bytes(2, "little"))
            self._begin(self._join(channel, port))

    def data_received(self, data: bytes) -> None:
        try:
            for opcode, payload in self._reader.feed(data):
                self._handle(opcode, payload)
        except websocket.Broken:
            self._end()

    def send(self, stream: int, data: bytes, *, is_last: bool = False) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(websocket.frame(bytes([stream]) + data))

    def over(self, stream: int) -> None:
        if self._pipes.pop(stream, None) is not None and not self._pipes and self._transport is not None:
            self._transport.write(websocket.close_frame())
            self._end()

    def _handle(self, opcode: int, payload: bytes) -> None:
        if opcode == websocket.CLOSE:
            self._end()
        elif opcode == websocket.PING and self._transport is not None:
            self._transport.write(websocket.frame(payload, websocket.PONG))
        elif payload and (pipe := self._pipes.get(payload[0])):
            pipe.pass_on(payload[1:], is_last=False)

    async def _join(self, channel: int, port: int) -> None:
        loop = asyncio.get_running_loop()
        try:
            sock = await loop.run_in_executor(None, self._connect, port)
            await loop.create_connection(lambda: self._pipes[channel], sock=sock)
        except (NotEntered, OSError) as e:
            why = e.message if isinstance(e, NotEntered) else str(e)
            self.send(channel + 1, f"error forwarding port {port} to pod: {why}".encode())
            self.over(channel)
