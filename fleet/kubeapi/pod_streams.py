"""exec, attach and port-forward at the fleet: authorisation, audit, and the limit of open streams.

A stream is a `Tunnel` to the pod's member: the protocol, WebSocket or SPDY, is between the client and the member. The rights of
all open streams are checked together every few seconds, and streams whose caller has lost the right are closed.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from django.conf import settings
from django.db import DatabaseError, InterfaceError

from fleet.core.open_places import OpenPlaces
from fleet.errors import ConvoyError
from fleet.kube.requests.status import KubeError
from fleet.kube.resources import PODS
from fleet.kube.server import upgrades
from fleet.kube.server.request import Receive, Request, Scope, Send, disconnected
from fleet.kubeapi import auditing
from fleet.kubeapi.tunnel import Tunnel
from fleet.limits.seats import leave_seat
from fleet.member.errors import MemberError
from fleet.member.streaming import upgrading
from fleet.member.streaming.upgrading import Answer, Connection, Headers
from fleet.services.members import pod_tunnels, proxying
from fleet.services.members.pod_tunnels import Way
from fleet.services.members.proxying import Call

log = logging.getLogger(__name__)

InThread = Callable[..., Awaitable[Any]]

RECHECK_S = 2.0
"""Seconds between two checks whether the callers of open streams still have the right."""
MAX_FAILED_CHECKS = 3
"""Checks in a row that may fail, for example while the database restarts, before all streams are closed."""
_OPEN_S = 30.0
"""For the member's answer: its API server asks the kubelet first."""
_PATH = re.compile(rf"{PODS.root}/namespaces/([^/]+)/pods/([^/]+)/({'|'.join(sorted(proxying.TUNNELED))})/?")
_PROTOCOLS = re.compile(rb"(v\d+\.|base64\.)?(channel|portforward)\.k8s\.io|SPDY/3\.1\+portforward\.k8s\.io")
"""Subprotocols of WebSocket that are passed on. A caller's token may stand beside them: it is not for the member."""
_REQUEST_HEADERS = (b"sec-websocket-key", b"sec-websocket-version", b"x-stream-protocol-version")
_ANSWER_HEADERS = (
    b"upgrade",
    b"connection",
    b"sec-websocket-accept",
    b"sec-websocket-protocol",
    b"x-stream-protocol-version",
)
_PLAIN = re.compile(rb"[\x20-\x7e]*")
_MOST_FIELDS = 1000
_UPGRADES = (b"websocket", b"spdy/3.1")


@dataclass(frozen=True, slots=True)
class StreamPath:
    """The pod and the subresource that a path names."""

    namespace: str
    name: str
    subresource: str


def stream_path(path: str) -> StreamPath | None:
    """The stream that the path names; None for every other path."""
    match = _PATH.fullmatch(path)
    return StreamPath(*match.groups()) if match else None


@dataclass(eq=False, slots=True)
class Stream:
    """An open stream."""

    request: Request
    namespace: str
    cluster: str
    tunnel: Tunnel = field(default_factory=Tunnel)


class PodStreams:
    def __init__(self, in_thread: InThread, user_of: Callable[[Request], Any]) -> None:
        self._in_thread, self._user_of = in_thread, user_of
        self._places = OpenPlaces()
        self._open: set[Stream] = set()
        self._watch: asyncio.Task[None] | None = None

    async def answer(self, scope: Scope, request: Request, receive: Receive, send: Send, path: StreamPath) -> None:
        """Returns when the stream is over. Refusals are raised, as long as nothing was answered."""
        headers = _headers(scope)
        user = await self._in_thread(self._user_of, request)
        with self._place(user.pk):
            try:
                way: Way = await self._in_thread(self._authorize, request, user, path)
                await self._open_and_pipe(scope, request, receive, send, user, way, headers)
            except ConvoyError as e:
                raise KubeError(e.status, e.message, details={"name": path.name, "kind": "pods"}) from e

    def _authorize(self, request: Request, user: Any, path: StreamPath) -> Way:
        try:
            return pod_tunnels.way(user, request.method, path.namespace, path.name, path.subresource)
        except ConvoyError as e:
            call = Call(request.method, request.path, "", "pods", path.namespace, path.name, path.subresource)
            auditing.refused(request, "", call, user, e.status, e.message)
            raise

    async def _open_and_pipe(
        self, scope: Scope, request: Request, receive: Receive, send: Send, user: Any, way: Way, headers: Headers
    ) -> None:
        about = auditing.session_of(request, way.cluster.name, way.call, user, _command(scope))
        line = await self._in_thread(auditing.session_begun, about)
        leave_seat()
        try:
            answer = await self._open_tunnel(scope, request, receive, way, headers)
        except ConvoyError as e:
            await self._in_thread(auditing.ended, line, e.status, e.message)
            raise
        if answer is None:
            await self._in_thread(auditing.ended, line, 504, "the caller left before the cluster answered")
            return
        stream = Stream(request, way.call.namespace, way.cluster.name)
        try:
            await self._in_thread(auditing.ended, line, 200 if answer.connection else answer.status)
            if answer.connection is None:
                await _refuse(send, answer)
            else:
                await self._pipe(scope, answer, answer.connection, stream, about)
        finally:
            if answer.connection is not None and not stream.tunnel.is_over:
                answer.connection.abort()

    async def _pipe(
        self, scope: Scope, answer: Answer, connection: Connection, stream: Stream, about: auditing.Session
    ) -> None:
        why = "the caller left"
        try:
            passed = [(key, value) for key, value in answer.headers if key in _ANSWER_HEADERS]
            upgrades.take_over(scope, passed, stream.tunnel.client)
            connection.hand_over(stream.tunnel.pod)
            self._add(stream)
            why = await stream.tunnel.over()
        except ConnectionError:
            connection.abort()
        except asyncio.CancelledError:
            why = "this process ended"
            stream.tunnel.end(why)
            raise
        finally:
            self._open.discard(stream)
            counts = f"{stream.tunnel.client.count} bytes in, {stream.tunnel.pod.count} bytes out"
            await asyncio.shield(self._in_thread(auditing.session_over, about, f"{why}; {counts}"))

    async def _open_tunnel(
        self, scope: Scope, request: Request, receive: Receive, way: Way, headers: Headers
    ) -> Answer | None:
        """The member's answer; None when the caller has left meanwhile."""
        query = scope["query_string"].decode("latin-1")
        target = way.call.path + (f"?{query}" if query else "")
        opening = asyncio.create_task(
            upgrading.request(way.endpoint, request.method, target, headers, timeout_s=_OPEN_S)
        )
        leaving = asyncio.create_task(disconnected(receive))
        try:
            await asyncio.wait({opening, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                return None
            answer = opening.result()
        except MemberError as e:
            raise proxying.unavailable(way.cluster, e) from e
        finally:
            opening.cancel()
            leaving.cancel()
        if refused := proxying.refused_status(way.cluster, answer.status):
            raise refused
        return answer

    @contextmanager
    def _place(self, user: Any) -> Iterator[None]:
        """Takes one of the places for open streams; refuses with 429 when there is none."""
        limits = settings.CONVOY_LIMITS.part
        if not self._places.take(user, of_one=limits.streams, in_all=limits.all_streams):
            message = f"too many streams to pods are open: {limits.streams} for one user, {limits.all_streams} in all"
            raise KubeError(429, message, details={"retryAfterSeconds": 1})
        try:
            yield
        finally:
            self._places.give_back(user)

    def _add(self, stream: Stream) -> None:
        self._open.add(stream)
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._recheck_rights())
            self._watch.add_done_callback(self._looked)

    def _looked(self, watch: asyncio.Task[None]) -> None:
        """No stream stays open that is not looked at any more, as after an error that was not foreseen."""
        error = None if watch.cancelled() else watch.exception()
        if error is None:
            return
        log.error("the rights of streams to pods cannot be looked at: all are closed", exc_info=error)
        for stream in list(self._open):
            stream.tunnel.end("the rights of the caller could not be looked at")

    async def _recheck_rights(self) -> None:
        """While streams are open: closes those that are idle, and those whose caller has lost the right."""
        failures = 0
        while self._open:
            await asyncio.sleep(RECHECK_S)
            streams = list(self._open)
            self._end_idle(streams)
            try:
                refused = await self._in_thread(self._refused, streams)
                failures = 0
            except (DatabaseError, InterfaceError) as e:
                failures += 1
                log.warning("the rights of %s streams to pods cannot be looked at: %s", len(streams), e)
                refused = streams if failures >= MAX_FAILED_CHECKS else []
            for stream in refused:
                stream.tunnel.end("the caller has lost the right")

    def _end_idle(self, streams: list[Stream]) -> None:
        idle_s, now = settings.CONVOY_MEMBERS.proxy_stream_idle_s, asyncio.get_running_loop().time()
        for stream in streams:
            if now - stream.tunnel.used_at > idle_s:
                stream.tunnel.end(f"idle for {idle_s:.0f} s")

    def _refused(self, streams: list[Stream]) -> list[Stream]:
        """Streams whose caller has lost the right; checked once for all streams of a token in a namespace."""
        answers: dict[tuple[str, str, str], bool] = {}
        refused = []
        for stream in streams:
            key = (stream.request.bearer, stream.namespace, stream.cluster)
            if key not in answers:
                answers[key] = self._may_go_on(stream)
            if not answers[key]:
                refused.append(stream)
        return refused

    def _may_go_on(self, stream: Stream) -> bool:
        try:
            user = self._user_of(stream.request)
        except KubeError:
            return False
        return pod_tunnels.may_go_on(user, stream.namespace, stream.cluster)


async def _refuse(send: Send, answer: Answer) -> None:
    """The member's own answer, as it is: a kubelet's is plain text, an API server's a Status."""
    kind = answer.header(b"content-type") or b"text/plain"
    headers = [(b"content-type", kind), (b"content-length", str(len(answer.body)).encode())]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def _headers(scope: Scope) -> Headers:
    """The headers that are passed on to the member; raises KubeError when the request names no protocol that pods speak."""
    _require_plain_query(scope["query_string"])
    if scope["method"] not in ("GET", "POST"):
        raise KubeError(405, "the server does not allow this method on the requested resource")
    upgrade = upgrades.upgrade_of(scope)
    if upgrade not in _UPGRADES:
        raise KubeError(400, "Upgrade request required: WebSocket or SPDY/3.1, as kubectl sends them")
    name = b"websocket" if upgrade == b"websocket" else b"SPDY/3.1"
    headers = [(b"connection", b"Upgrade"), (b"upgrade", name)]
    headers += [(key, value) for key in _REQUEST_HEADERS for value in upgrades.values(scope, key)]
    if any(not _PLAIN.fullmatch(value) for _, value in headers):
        raise KubeError(400, "the headers of the upgrade have characters that are not passed on to a cluster")
    offered = [
        word.strip() for value in upgrades.values(scope, b"sec-websocket-protocol") for word in value.split(b",")
    ]
    if spoken := [word for word in offered if _PROTOCOLS.fullmatch(word)]:
        headers.append((b"sec-websocket-protocol", b", ".join(spoken)))
    return headers if scope["method"] == "GET" else [*headers, (b"content-length", b"0")]


def _require_plain_query(query: bytes) -> None:
    """Raises KubeError for a query that no client sends, and that could mean something else to the member than here."""
    if not _PLAIN.fullmatch(query) or b" " in query or b"#" in query:
        raise KubeError(400, "the query has characters that have to be written with percent signs")
    if query.count(b"&") >= _MOST_FIELDS:
        raise KubeError(400, f"the query has more than {_MOST_FIELDS} fields")


def _command(scope: Scope) -> dict[str, Any]:
    """The command and its container, for the audit."""
    query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    known = {key: query[key] for key in ("command", "container", "ports", "stdin", "tty") if key in query}
    return {key: values if key in ("command", "ports") else values[0] for key, values in known.items()}
