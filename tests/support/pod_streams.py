"""Streams into pods as a WebSocket client opens them, many at once in one event loop; and a pod whose output they show."""

import asyncio
import base64
import os
import socket
import ssl
from urllib.parse import urlsplit

from fleet.member.client import Access
from simulator.streaming.source import Entered, NotEntered

ATTACH = "/api/v1/namespaces/{namespace}/pods/{name}/attach?stdout=true"


class Ticking:
    """A pod that prints ``line`` whenever `tick` is called."""

    def __init__(self, line: bytes = b"tick\n") -> None:
        self._line, self._text = line, b""
        self.reads = 0
        """How often its output was asked for: by each stream, several times a second."""

    def tick(self) -> None:
        self._text += self._line

    def read(self, namespace: str, name: str, offset: int) -> tuple[bytes, bool] | None:
        self.reads += 1
        return self._text[offset:], False

    def enter(self, namespace: str, name: str, command: list[str], *, stdin: bool, tty: bool) -> Entered:
        raise NotEntered("it prints and does nothing else")

    def connect(self, namespace: str, name: str, port: int) -> socket.socket:
        raise NotEntered("it prints and does nothing else")


class Stream:
    """One that is open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def until(self, text: bytes) -> None:
        await self._reader.readuntil(text)

    async def until_closed(self) -> int:
        """The bytes that came before."""
        count = 0
        try:
            while data := await self._reader.read(65536):
                count += len(data)
        except (ConnectionError, ssl.SSLError):
            return count
        return count

    def close(self) -> None:
        self._writer.transport.abort()


async def follow(access: Access, name: str, namespace: str = "default") -> Stream:
    """The log of the pod, as long as it is written, once its answer has begun."""
    parts = urlsplit(access.server)
    context = ssl.create_default_context(cadata=access.ca_pem)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=context)
    lines = (
        f"GET /api/v1/namespaces/{namespace}/pods/{name}/log?follow=true HTTP/1.1",
        f"Host: {parts.netloc}",
        f"Authorization: Bearer {access.token}",
    )
    writer.write("".join(f"{line}\r\n" for line in (*lines, "")).encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head + await reader.read(65536)
    return Stream(reader, writer)


async def attach(access: Access, name: str, namespace: str = "default") -> Stream:
    """An open stream; raises AssertionError with the answer when there is none."""
    parts = urlsplit(access.server)
    context = ssl.create_default_context(cadata=access.ca_pem)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=context)
    lines = (
        f"GET {ATTACH.format(namespace=namespace, name=name)} HTTP/1.1",
        f"Host: {parts.netloc}",
        f"Authorization: Bearer {access.token}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.{access.token}, v5.channel.k8s.io",
    )
    writer.write("".join(f"{line}\r\n" for line in (*lines, "")).encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101"), head + await reader.read(65536)
    return Stream(reader, writer)
