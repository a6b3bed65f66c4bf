"""Messages of the node check: JSON objects of one line each, of bounded size, over one TCP connection."""

from __future__ import annotations

import json
import socket
import time
from types import TracebackType
from typing import Any

LONGEST = 64 << 10


class Ended(Exception):
    """The other side is gone, says what is no message, or says nothing in time."""


class Channel:
    def __init__(self, peer: socket.socket) -> None:
        self.socket = peer
        self._read = bytearray()

    @classmethod
    def to(cls, address: tuple[str, int], deadline: float) -> Channel:
        """Waits for the other side to listen."""
        while True:
            try:
                return cls(socket.create_connection(address, 10))
            except OSError as e:
                if time.monotonic() >= deadline:
                    raise Ended(f"{address[0]}:{address[1]} is not reached: {e}") from e
                time.sleep(0.2)

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.socket.close()

    def send(self, message: dict[str, Any]) -> None:
        try:
            self.socket.settimeout(10)
            self.socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as e:
            raise Ended(f"the other side is gone: {e}") from e

    def receive(self, deadline: float) -> dict[str, Any]:
        while (message := self.message()) is None:
            try:
                self.socket.settimeout(max(deadline - time.monotonic(), 0.001))
                self.read()
            except OSError as e:
                raise Ended(f"the other side says nothing: {e}") from e
        return message

    def read(self) -> None:
        """Takes what has arrived. Raises `Ended` and `OSError`."""
        piece = self.socket.recv(LONGEST)
        if not piece or len(self._read) + len(piece) > 2 * LONGEST:
            raise Ended("the other side has ended" if not piece else "the other side says too much")
        self._read += piece

    def message(self) -> dict[str, Any] | None:
        """The next message that has arrived as a whole."""
        line, end, rest = self._read.partition(b"\n")
        if not end:
            return None
        self._read = bytearray(rest)
        try:
            message = json.loads(bytes(line))
        except ValueError as e:
            raise Ended("the other side says what is no message") from e
        if not isinstance(message, dict):
            raise Ended("the other side says what is no message")
        return message
