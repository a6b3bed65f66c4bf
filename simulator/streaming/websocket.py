"""The frames of WebSocket (RFC 6455), as its server sends and reads them. Knows bytes, no connection."""

import base64
import hashlib
from collections.abc import Iterator

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
LARGEST = 2**20
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_LENGTHS = {126: 2, 127: 8}


class Broken(Exception):
    """What arrives is no WebSocket."""


def accept(key: bytes) -> bytes:
    """The answer to the client's key."""
    return base64.b64encode(hashlib.sha1(key + _GUID).digest())  # noqa: S324 - the protocol's, and no secret


def frame(payload: bytes, opcode: int = BINARY) -> bytes:
    length = len(payload)
    size = (
        bytes([length])
        if length < 126
        else b"\x7e" + length.to_bytes(2, "big")
        if length < 2**16
        else b"\x7f" + length.to_bytes(8, "big")
    )
    return bytes([0x80 | opcode]) + size + payload


def close_frame(code: int = 1000) -> bytes:
    return frame(code.to_bytes(2, "big"), CLOSE)


class Reader:
    """Messages from what has arrived."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._parts, self._opcode = bytearray(), 0

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Whole messages and control frames: opcode and payload."""
        self._data += data
        while (received := self._frame()) is not None:
            is_last, opcode, payload = received
            if opcode >= CLOSE:
                yield opcode, payload
                continue
            self._opcode = opcode or self._opcode
            self._parts += payload
            if len(self._parts) > LARGEST:
                raise Broken("the message is too long")
            if is_last:
                whole, self._parts = bytes(self._parts), bytearray()
                yield self._opcode, whole

    def _frame(self) -> tuple[bool, int, bytes] | None:
        data = self._data
        if len(data) < 2:
            return None
        length, start = data[1] & 0x7F, 2
        if length in _LENGTHS:
            start += _LENGTHS[length]
            if len(data) < start:
                return None
            length = int.from_bytes(data[2:start], "big")
        if length > LARGEST or not data[1] & 0x80:
            raise Broken("a client masks its frames, and keeps them short")
        end = start + 4 + length
        if len(data) < end:
            return None
        key = bytes(data[start : start + 4])
        mask = (key * (length // 4 + 1))[:length]
        masked = int.from_bytes(data[start + 4 : end], "big") ^ int.from_bytes(mask, "big")
        received = bool(data[0] & 0x80), data[0] & 0x0F, masked.to_bytes(length, "big")
        del data[:end]
        return received
