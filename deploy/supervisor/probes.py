"""Asks a child whether it is ready, over the door it serves. A probe is a coroutine: yes or no, it never raises."""

import asyncio
import http.client
import json
import re
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

Probe = Callable[[], Awaitable[bool]]
PATIENCE_S = 3.0
HOST = "127.0.0.1"


async def always() -> bool:
    return True


def answers(exchange: Callable[[], Awaitable[bool]]) -> Probe:
    """Turns an exchange that may fail into one that says no."""

    async def probe() -> bool:
        try:
            return await asyncio.wait_for(exchange(), PATIENCE_S)
        except (OSError, http.client.HTTPException, ValueError):
            return False

    return probe


def pings(port: int, password: str) -> Probe:
    """A Redis or Valkey that knows us."""

    async def exchange() -> bool:
        said = await _say(port, f"AUTH {password}\r\nPING\r\nQUIT\r\n".encode())
        return b"+PONG" in said

    return answers(exchange)


def checks(port: int, *names: str) -> Probe:
    """The named checks of the product's own ``/readyz`` are good."""

    async def exchange() -> bool:
        _, body = await _get(port, "/readyz?verbose")
        results = json.loads(body).get("checks", {})
        return all(is_ok(results.get(name)) for name in names)

    return answers(exchange)


def listens(door: Path) -> Probe:
    """A Unix socket that takes connections."""

    async def exchange() -> bool:
        _, writer = await asyncio.open_unix_connection(door)
        writer.close()
        return True

    return answers(exchange)


def serves(port: int, path: str) -> Probe:
    """It answers this path at all."""

    async def exchange() -> bool:
        status, _ = await _get(port, path)
        return status < 500

    return answers(exchange)


def is_ok(result: object) -> bool:
    """A check is spelled ``true``, ``"ok"`` or ``{"ok": true}``."""
    if isinstance(result, dict):
        result = result.get("ok", result.get("status"))
    return result is True or result == "ok"


def serves_kubeconfigs(folder: Path, count: int) -> Probe:
    """The simulated members: as many kubeconfigs as clusters, and each server in them accepts connections."""

    async def exchange() -> bool:
        files = list(folder.glob("*.kubeconfig"))
        ports = [
            int(port) for file in files for port in re.findall(r"server: https?://[^:/\s]+:(\d+)", file.read_text())
        ]
        for port in ports:
            _, writer = await asyncio.open_connection(HOST, port)
            writer.close()
        return len(ports) >= count

    return answers(exchange)


def serves_tls(port: int, authority: Path) -> Probe:
    """The Kubernetes-style API: it answers under a certificate of this home's own authority."""

    def fetch() -> bool:
        context = ssl.create_default_context(cafile=authority)
        connection = http.client.HTTPSConnection(HOST, port, timeout=PATIENCE_S, context=context)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        finally:
            connection.close()

    async def exchange() -> bool:
        return await asyncio.to_thread(fetch)

    return answers(exchange)


async def _get(port: int, path: str) -> tuple[int, bytes]:
    return await asyncio.to_thread(_fetch, port, path)


def _fetch(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


async def _say(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(request)
        return await reader.read()
    finally:
        writer.close()
