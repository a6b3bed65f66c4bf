"""The frames of SPDY/3.1, as far as Kubernetes uses them: streams with headers, data, pings. Knows bytes, no connection.

Kubernetes' own library keeps no flow-control windows, and so neither does this.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

SYN_STREAM, SYN_REPLY, RST_STREAM, PING, GOAWAY, HEADERS = 1, 2, 3, 6, 7, 8
FIN = 1
LARGEST = 2**24
_NAMES = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_TEXT = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative "
    "Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 "
    "Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec "
    "00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    "application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8"
    "charset=iso-8859-1,utf-,*,enq=0."
)
_WORDS = [name.replace("_", " ").encode() for name in _NAMES.split(" ")]
DICTIONARY = b"".join(struct.pack(">I", len(word)) + word for word in _WORDS) + _TEXT.encode()
"""With which headers are compressed: the protocol's, section 2.6.10.1."""


class Broken(Exception):
    """What arrives is no SPDY/3.1."""


@dataclass(frozen=True, slots=True)
class Opened:
    stream: int
    headers: dict[str, str]
    is_last: bool


@dataclass(frozen=True, slots=True)
class Data:
    stream: int
    data: bytes
    is_last: bool


@dataclass(frozen=True, slots=True)
class Reset:
    stream: int


@dataclass(frozen=True, slots=True)
class Left:
    """The client opens no more streams."""


Event = Opened | Data | Reset | Left


@dataclass(slots=True)
class Session:
    """The server's side."""

    out: bytearray = field(default_factory=bytearray)
    """What is to be sent."""
    _data: bytearray = field(default_factory=bytearray)
    _inflate: "zlib._Decompress" = field(default_factory=lambda: zlib.decompressobj(zdict=DICTIONARY))
    _deflate: "zlib._Compress" = field(default_factory=lambda: zlib.compressobj(zdict=DICTIONARY))

    def feed(self, data: bytes) -> Iterator[Event]:
        self._data += data
        while len(self._data) >= 8:
            first, second = struct.unpack(">II", self._data[:8])
            flags, length = second >> 24, second & 0xFFFFFF
            if len(self._data) < 8 + length:
                return
            body = bytes(self._data[8 : 8 + length])
            del self._data[: 8 + length]
            if not first >> 31:
                yield Data(first, body, bool(flags & FIN))
            elif (event := self._control(first & 0xFFFF, flags, body)) is not None:
                yield event

    def _control(self, kind: int, flags: int, body: bytes) -> Event | None:
        match kind:
            case 1:
                return Opened(self._stream(body), self._headers(body[10:]), bool(flags & FIN))
            case 3:
                return Reset(self._stream(body))
            case 6:
                self._send(PING, 0, body)
            case 7:
                return Left()
            case 8:
                self._headers(body[4:])  # the compression has a memory
        return None

    def reply(self, stream: int) -> None:
        self._send(SYN_REPLY, 0, struct.pack(">I", stream) + self._compressed({}))

    def send(self, stream: int, data: bytes, *, is_last: bool = False) -> None:
        for start in range(0, max(len(data), 1), LARGEST // 256):
            piece = data[start : start + LARGEST // 256]
            flags = FIN if is_last and start + len(piece) >= len(data) else 0
            self.out += struct.pack(">II", stream, flags << 24 | len(piece)) + piece

    def reset(self, stream: int) -> None:
        self._send(RST_STREAM, 0, struct.pack(">II", stream, 5))

    def leave(self) -> None:
        self._send(GOAWAY, 0, struct.pack(">II", 0, 0))

    def _send(self, kind: int, flags: int, body: bytes) -> None:
        self.out += struct.pack(">HHI", 0x8003, kind, flags << 24 | len(body)) + body

    def _stream(self, body: bytes) -> int:
        if len(body) < 4:
            raise Broken("a frame is too short")
        return int(struct.unpack(">I", body[:4])[0]) & 0x7FFFFFFF

    def _compressed(self, headers: dict[str, str]) -> bytes:
        parts = [struct.pack(">I", len(headers))]
        for text in (text for pair in headers.items() for text in pair):
            parts.append(struct.pack(">I", len(text)) + text.encode())
        return self._deflate.compress(b"".join(parts)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)

    def _headers(self, packed: bytes) -> dict[str, str]:
        try:
            plain = self._inflate.decompress(packed, LARGEST)
            (count,), at = struct.unpack(">I", plain[:4]), 4
            texts = []
            for _ in range(count * 2):
                (length,) = struct.unpack(">I", plain[at : at + 4])
                texts.append(plain[at + 4 : at + 4 + length].decode("latin-1"))
                at += 4 + length
        except (zlib.error, struct.error) as e:
            raise Broken(f"headers cannot be read: {e}") from e
        return {name.lower(): value for name, value in zip(texts[::2], texts[1::2], strict=True)}
