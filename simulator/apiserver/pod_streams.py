"""exec, attach and port-forward: what an API server and its kubelet answer, and the stream once they have switched."""

import asyncio
import re
from functools import partial
from urllib.parse import parse_qs

from fleet.kube.requests.status import KubeError
from fleet.kube.server import upgrades
from fleet.kube.server.request import Scope, Send
from simulator.apiserver.objects.catalog import Target
from simulator.apiserver.objects.store import Object
from simulator.streaming import carriers, forwarding, websocket
from simulator.streaming.carriers import SpdyCarrier, WebSocketCarrier
from simulator.streaming.forwarding import Forwarding
from simulator.streaming.port_channels import PortChannels
from simulator.streaming.sessions import Command, Output, Session
from simulator.streaming.source import NotEntered, PodSource

_PATH = re.compile(r"/api/v1/namespaces/[^/]+/pods/[^/]+/(exec|attach|portforward)/?")
_MOST_PORTS = 64
"""Their channels are numbered by one byte."""
_CHANNELS = ("stdin", "stdout", "stderr")
Query = dict[str, list[str]]


def is_wanted(path: str) -> bool:
    return _PATH.fullmatch(path) is not None


async def answer(
    scope: Scope, send: Send, target: Target, pod: Object, source: PodSource | None, stopped: asyncio.Event
) -> None:
    """Returns when the stream is over."""
    query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    upgrade = upgrades.upgrade_of(scope)
    if upgrade not in (b"websocket", b"spdy/3.1"):
        raise KubeError(400, "Upgrade request required")
    if not pod["spec"].get("nodeName"):
        raise KubeError(400, f"pod {target.name} does not have a host assigned")
    is_websocket = upgrade == b"websocket"
    try:
        _require_container(pod, query)
        protocol = _protocol(scope, is_websocket=is_websocket, ports=target.subresource == "portforward")
        stream = await _stream(target, query, source, protocol, is_websocket=is_websocket)
    except NotEntered as e:
        return await _refuse(send, e)
    over = _Over(stream)
    upgrades.take_over(scope, _headers(scope, protocol, is_websocket=is_websocket), over)
    await over.wait(stopped)
    return None


def _require_container(pod: Object, query: Query) -> None:
    names = [container["name"] for container in pod["spec"]["containers"]]
    name = (query.get("container") or names)[0]
    if name not in names:
        raise KubeError(400, f"container {name} is not valid for pod {pod['metadata']['name']}")
    if (pod.get("status") or {}).get("phase") != "Running":
        raise NotEntered(f'container not found ("{name}")')


def _protocol(scope: Scope, *, is_websocket: bool, ports: bool) -> str:
    """The first that the client offers and this end speaks; empty for ports at a client that offers none, as kr8s does."""
    name = b"sec-websocket-protocol" if is_websocket else b"x-stream-protocol-version"
    offered = [word.strip().decode("latin-1") for value in upgrades.values(scope, name) for word in value.split(b",")]
    if ports and is_websocket and not offered:
        return ""
    if ports:
        known: tuple[str, ...] = (forwarding.TUNNELED, carriers.V4) if is_websocket else (forwarding.SPDY,)
    else:
        known = (carriers.V5, carriers.V4) if is_websocket else (carriers.V4,)
    spoken = next((word for word in offered if word in known), "")
    if not spoken:
        raise NotEntered(
            f"unable to upgrade: unable to negotiate protocol: client supports {offered}, server {known}", 403
        )
    return spoken


async def _stream(
    target: Target, query: Query, source: PodSource | None, protocol: str, *, is_websocket: bool
) -> asyncio.Protocol:
    if source is None:
        raise NotEntered("no kubelet runs on the node of this pod")
    if target.subresource == "portforward":
        connect = partial(source.connect, target.namespace, target.name)
        if protocol in ("", carriers.V4):
            return PortChannels(connect, _ports(query))
        return Forwarding(connect, in_messages=is_websocket)
    wanted = {name for name in _CHANNELS if (query.get(name) or [""])[0] in ("1", "true")}
    tty = (query.get("tty") or [""])[0] in ("1", "true")
    session = await _session(target, query, source, stdin="stdin" in wanted, tty=tty)
    if is_websocket:
        return WebSocketCarrier(session)
    return SpdyCarrier(session, {"error", *wanted, *(("resize",) if tty else ())})


def _ports(query: Query) -> list[int]:
    words = ",".join(query.get("ports") or []).split(",")
    if not words[0]:
        raise KubeError(400, 'query parameter "port" is required')
    ports = [int(word) if word.isascii() and word.isdigit() and len(word) <= 5 else 0 for word in words]
    if any(not 0 < port < 2**16 for port in ports) or len(ports) > _MOST_PORTS:
        raise KubeError(400, f"unable to parse {words} as ports")
    return ports


async def _session(target: Target, query: Query, source: PodSource, *, stdin: bool, tty: bool) -> Session:
    if target.subresource == "attach":
        return Output(partial(source.read, target.namespace, target.name))
    command = query.get("command")
    if not command:
        raise KubeError(400, "you must specify at least 1 command for the container")
    run = partial(source.enter, target.namespace, target.name, command, stdin=stdin, tty=tty)
    return Command(await asyncio.get_running_loop().run_in_executor(None, run))


def _headers(scope: Scope, protocol: str, *, is_websocket: bool) -> list[tuple[bytes, bytes]]:
    if not is_websocket:
        switched = [(b"Connection", b"Upgrade"), (b"Upgrade", b"SPDY/3.1")]
        return [*switched, (b"X-Stream-Protocol-Version", protocol.encode())]
    key = next(upgrades.values(scope, b"sec-websocket-key"), b"")
    switched = [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")]
    spoken = [(b"Sec-WebSocket-Protocol", protocol.encode())] if protocol else []
    return [*switched, (b"Sec-WebSocket-Accept", websocket.accept(key)), *spoken]


async def _refuse(send: Send, error: NotEntered) -> None:
    """As a kubelet does: in plain text."""
    body = f"{error.message}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class _Over(asyncio.Protocol):
    """The stream's protocol, whose end can be awaited."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        self._lost = protocol.connection_lost
        self._made = protocol.connection_made
        self._ended = asyncio.Event()
        self.data_received = protocol.data_received  # type: ignore[method-assign]
        self.pause_writing = protocol.pause_writing  # type: ignore[method-assign]
        self.resume_writing = protocol.resume_writing  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended.set()
        self._lost(exc)

    async def wait(self, stopped: asyncio.Event) -> None:
        """Until it ends, or the server does."""
        ending = asyncio.create_task(stopped.wait())
        ended = asyncio.create_task(self._ended.wait())
        try:
            await asyncio.wait({ending, ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
            ended.cancel()
            self._transport.close()
