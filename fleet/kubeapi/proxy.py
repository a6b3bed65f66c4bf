"""``/apis/cluster.karmada.io/v1alpha1/clusters/NAME/proxy/...``: a member's own API, for callers who may.

Bytes go through as they come: a chunk is read from the member when the one before it was taken, and a reader who leaves
closes the member's side. Of headers only those named here pass, in either direction.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.conf import settings

from fleet.core.open_places import OpenPlaces
from fleet.errors import ConvoyError
from fleet.kube.requests.status import KubeError
from fleet.kube.server.request import Receive, Request, Scope, Send, disconnected
from fleet.kubeapi import auditing
from fleet.limits.seats import leave_seat
from fleet.member.errors import MemberError
from fleet.member.passing import Passing
from fleet.member.streaming.following import Following
from fleet.models import Cluster
from fleet.services.members import proxied_workloads, proxying

log = logging.getLogger(__name__)

InThread = Callable[..., Awaitable[Any]]

ROOT = "/apis/cluster.karmada.io/v1alpha1/clusters/"
ASKED = ("accept", "accept-encoding", "content-type")
ANSWERED = ("content-type", "content-encoding", "content-length", "warning", "retry-after", "etag")
LARGEST = 256 * 1024 * 1024
"""Maximum bytes of an answer that is no stream: larger lists have to be requested in pages."""
STREAMS = 128
OF_ONE = 48
"""Answers open at once, in all and for one user: each has a thread waiting for its member.

A log that is followed has none, and is limited as streams into pods are.
"""
_ASKED_S = 30.0
"""Within which a member is asked for a followed log; its answer begins with the first byte of the log."""
LOOK_AGAIN_S = 3.0
"""How often it is asked anew whether the reader of a stream may still read."""


def cluster_of(path: str) -> str:
    """The cluster whose API the path is about; empty for every other path."""
    name, _, rest = path.removeprefix(ROOT).partition("/") if path.startswith(ROOT) else ("", "", "")
    return name if rest == "proxy" or rest.startswith("proxy/") else ""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request that may be passed on: whose it is, and what which member is asked."""

    user: Any
    cluster: Cluster
    call: proxying.Call


class Proxy:
    def __init__(self, in_thread: InThread, user_of: Callable[[Request], Any]) -> None:
        self.in_thread, self._user_of = in_thread, user_of
        self._threads = ThreadPoolExecutor(STREAMS, thread_name_prefix="proxy")
        self._open, self._followed = OpenPlaces(), OpenPlaces()

    async def answer(self, scope: Scope, asked: Request, receive: Receive, send: Send) -> None:
        """The answer of the cluster that the path names."""
        name = cluster_of(asked.path)
        try:
            admit = partial(self._admitted, asked, name, _call(scope, name))
            await self.pass_on(scope, asked, receive, send, admit)
        except ConvoyError as e:
            details = {"name": name, "group": "cluster.karmada.io", "kind": "clusters"}
            raise KubeError(e.status, e.message, details=details) from e

    async def pass_on(
        self, scope: Scope, asked: Request, receive: Receive, send: Send, admit: Callable[[], Admitted]
    ) -> None:
        """Asks the member what ``admit``, in a thread, says the request means and lets the caller do.

        Refusals before the answer began are raised; one that breaks off later is left without its end.
        """
        admitted = await self.in_thread(admit)
        leave_seat()
        leaving = asyncio.create_task(disconnected(receive))
        stream = _Stream(self, asked, admitted)
        try:
            with self._place(stream):
                if await stream.open(scope, leaving):
                    await stream.pass_on(leaving, send)
        finally:
            leaving.cancel()

    @contextmanager
    def _place(self, stream: "_Stream") -> Iterator[None]:
        """One of the answers that may be open at once."""
        places, of_one, in_all = self._open, OF_ONE, STREAMS
        if stream.follows:
            limits = settings.CONVOY_LIMITS.part
            places, of_one, in_all = self._followed, limits.streams, limits.all_streams
        if not places.take(stream.user, of_one=of_one, in_all=in_all):
            limit = f"{of_one} for one user, {in_all} in all"
            raise KubeError(429, f"too many requests to clusters are open: {limit}")
        try:
            yield
        finally:
            places.give_back(stream.user)

    def _admitted(self, asked: Request, name: str, call: proxying.Call) -> Admitted:
        user = self._user_of(asked)
        try:
            proxying.require(user, call)
            proxied_workloads.require(call, asked.raw, asked.content_type)
            return Admitted(user, proxying.find(name), call)
        except ConvoyError as e:
            auditing.refused(asked, name, call, user, e.status, e.message)
            raise

    async def still_admitted(self, asked: Request, call: proxying.Call) -> bool:
        def ask() -> bool:
            try:
                proxying.require(self._user_of(asked), call)
            except (KubeError, ConvoyError):
                return False
            return True

        return bool(await self.in_thread(ask))

    def in_stream_thread(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().run_in_executor(self._threads, work)


class _Stream:
    """One request and its answer."""

    def __init__(self, proxy: Proxy, asked: Request, admitted: Admitted) -> None:
        self._proxy, self._asked, self._admitted, self._call = proxy, asked, admitted, admitted.call
        self._audited: Any = None
        self._lasting = asked.truth("watch") or admitted.call.subresource == "log"
        self.follows = admitted.call.subresource == "log" and asked.truth("follow")
        self.user = admitted.user.pk
        self._look_at = 0.0

    async def _note(self, status: int, message: str = "") -> None:
        if self._audited is not None:
            await self._proxy.in_thread(auditing.ended, self._audited, status, message)

    async def open(self, scope: Scope, leaving: asyncio.Task[None]) -> bool:
        """False when the reader left before the member answered."""
        if auditing.is_for_audit(self._call):
            name, user = self._admitted.cluster.name, self._admitted.user
            self._audited = await self._proxy.in_thread(auditing.begun, self._asked, name, self._call, user)
        query = scope["query_string"].decode("latin-1")
        opened: asyncio.Task[_Threaded | Following] = asyncio.create_task(self._opened(query))
        await asyncio.wait({opened, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            opened.cancel()
            await self._note(504, "the caller left before the cluster answered")
            return False
        try:
            self._answer = opened.result()
        except ConvoyError as e:
            await self._note(e.status, e.message)
            raise
        await self._note(self._answer.status)
        size = self._answer.header("content-length")
        if size.isdigit() and self._too_much(int(size)):
            self._answer.close()
            raise KubeError(413, f"the answer is larger than {LARGEST} bytes: ask for it in pages (limit, continue)")
        return True

    async def _opened(self, query: str) -> "_Threaded | Following":
        return await (self._follow(query) if self.follows else self._ask(query))

    async def _ask(self, query: str) -> "_Threaded":
        headers = {key.title(): self._asked.headers[key.encode()].decode("latin-1") for key in ASKED if self._has(key)}
        opening = partial(
            proxying.open_answer,
            self._admitted.cluster,
            self._call,
            self._admitted.user,
            query=query,
            headers=headers,
            body=self._asked.raw,
            lasting=self._lasting,
        )
        opened = self._proxy.in_stream_thread(opening)
        try:
            return _Threaded(self._proxy, await asyncio.shield(opened))
        except asyncio.CancelledError:
            opened.add_done_callback(_close)
            raise

    async def _follow(self, query: str) -> Following:
        cluster, idle_s = self._admitted.cluster, settings.CONVOY_MEMBERS.proxy_stream_idle_s
        line = await self._proxy.in_thread(proxying.line_to, cluster, self._admitted.user)
        try:
            answer = await Following.open(line, f"{self._call.path}?{query}", timeout_s=_ASKED_S, idle_s=idle_s)
        except MemberError as e:
            raise proxying.unavailable(cluster, e) from e
        if refused := proxying.refused_status(cluster, answer.status):
            answer.close()
            raise refused
        return answer

    async def pass_on(self, leaving: asyncio.Task[None], send: Send) -> None:
        """Until it ends or its reader leaves, whichever is first."""
        telling = asyncio.create_task(self._tell(send))
        try:
            await asyncio.wait({telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            telling.cancel()
            if isinstance(self._answer, Following):
                self._answer.close()
            else:
                await asyncio.to_thread(self._answer.close)
            await asyncio.gather(telling, return_exceptions=True)

    async def _tell(self, send: Send) -> None:
        answer = self._answer
        shown = [(key.encode(), answer.header(key).encode("latin-1")) for key in ANSWERED if answer.header(key)]
        shown.append((b"cache-control", b"no-cache, private"))
        await send({"type": "http.response.start", "status": answer.status, "headers": shown})
        passed = 0
        try:
            while chunk := await self._chunk():
                passed += len(chunk)
                if self._too_much(passed):
                    return
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except MemberError as e:
            log.warning("%s %s: %s", self._call.method, self._asked.path, e.message)
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _chunk(self) -> bytes:
        """The next bytes; none at the end, and none for whom may not read any more."""
        now = asyncio.get_running_loop().time
        reading = asyncio.ensure_future(self._answer.read())
        try:
            while not (await asyncio.wait({reading}, timeout=LOOK_AGAIN_S))[0] or now() > self._look_at:
                if self._look_at and not await self._proxy.still_admitted(self._asked, self._call):
                    return b""
                self._look_at = now() + LOOK_AGAIN_S
            return bytes(await reading)
        finally:
            reading.cancel()

    def _too_much(self, size: int) -> bool:
        return not self._lasting and size > LARGEST

    def _has(self, header: str) -> bool:
        return header.encode() in self._asked.headers


class _Threaded:
    """An open answer that threads wait for."""

    def __init__(self, proxy: Proxy, answer: Passing) -> None:
        self.status, self.header, self.close = answer.status, answer.header, answer.close
        self._proxy, self._answer = proxy, answer

    async def read(self) -> bytes:
        return bytes(await self._proxy.in_stream_thread(self._answer.read))


def _close(opened: asyncio.Future[Passing]) -> None:
    """Close an answer whose client is gone."""
    if not opened.cancelled() and not opened.exception():
        opened.result().close()


def _call(scope: Scope, cluster: str) -> proxying.Call:
    """From the path as it was sent: what is decoded twice is understood twice."""
    raw = scope["raw_path"].decode("latin-1")
    start = f"{ROOT}{cluster}/proxy"
    if not raw.startswith(start):
        raise KubeError(400, "the path to a cluster must be written plainly, without percent signs")
    return proxying.parse_call(scope["method"], raw[len(start) :])
