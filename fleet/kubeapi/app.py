"""The ASGI application of this door: who asks, which document, object or watch it is about, and refusals as Status objects.

Everything that touches the database runs in threads of a pool; watches stay on the event loop and share one follower.
"""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from datetime import datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import DatabaseError, DataError, InterfaceError, OperationalError, close_old_connections
from django.utils import timezone

from fleet import journal
from fleet.errors import ConvoyError, Forbidden
from fleet.kube.status import KubeError
from fleet.kubeapi import auditing, documents, lists, proxy, refusals, request, reviews
from fleet.kubeapi.catalog import Catalog, Target, parse
from fleet.kubeapi.feed import Feed
from fleet.kubeapi.kinds import NOT_ALLOWED, Kind, Object
from fleet.kubeapi.proxy import Proxy
from fleet.kubeapi.request import Receive, Request, Scope, Send
from fleet.kubeapi.verbs import Verbs, readable
from fleet.kubeapi.watching import LONGEST_S, Watch
from fleet.limits import USERS
from fleet.services import access

log = logging.getLogger(__name__)

_THREADS = 16
_LONGEST_PAUSE_S = 60.0
"""For which the reader of a list may leave a piece unread."""


class Application:
    def __init__(self, kinds: Sequence[Kind], clock: Callable[[], datetime] = timezone.now) -> None:
        self._catalog = Catalog(kinds)
        self._clock = clock
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="kubeapi")
        self._feed = Feed(self._in_thread)
        self._watches: Counter[int] = Counter()
        """Open ones of each user, whatever the token: `fleet.limits` counts those of one token."""
        self._proxy = Proxy(self._in_thread, self._user)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The edge of the process: whatever goes wrong inside, the caller is answered with a Status."""
        if scope["type"] != "http":
            return
        begun = False

        async def sending(message: dict[str, Any]) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._request(scope, receive, sending)
        except Exception as e:  # noqa: BLE001 - nothing is above it but the server, which would answer in plain text
            refused = _unforeseen(scope, e)
            if begun:
                return  # the server hangs up on an answer without its end
            await request.answer(send, refused.code, refused.as_status(), [])

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = await request.read(scope, receive)
        if asked is None:
            return None
        try:
            if any("\x00" in text for text in (asked.path, *asked.query.values())):
                raise KubeError(400, "the URL contains a zero byte")
            if asked.too_large:
                raise KubeError(413, f"Request entity too large: limit is {request.MAX_BODY}")
            if asked.method == "GET" and asked.path.rstrip("/") in documents.OPEN:
                return await request.answer(send, 200, documents.find(asked.path, self._catalog) or "", [])
            if proxy.cluster_of(asked.path):
                return await self._proxy.answer(scope, asked, receive, send)
            answer = await self._in_thread(self._answered, asked)
            if isinstance(answer, Watch):
                return await self._watch(answer, receive, send)
            code, document = answer
            if isinstance(document, lists.Stream):
                return await self._stream(document, send)
            await request.answer(send, code, document, asked.warnings)
        except KubeError as e:
            await request.answer(send, e.code, e.as_status(), asked.warnings)
        except ConvoyError as e:
            await request.answer(send, e.status, KubeError(e.status, e.message).as_status(), asked.warnings)

    async def _in_thread(self, work: Callable[..., Any], *args: Any) -> Any:
        return await sync_to_async(_with_database, thread_sensitive=False, executor=self._threads)(work, *args)

    def _answered(self, asked: Request) -> tuple[int, Object | str | lists.Stream] | Watch:
        user = self._user(asked)
        document = self._document(asked) if asked.method == "GET" else None
        if document is not None:
            return 200, document
        if asked.path.rstrip("/") in (reviews.ACCESS, reviews.RULES, reviews.WHOAMI):
            if asked.method != "POST":
                raise NOT_ALLOWED
            return 201, reviews.answer(asked, user, self._catalog)
        target = parse(asked.path, self._catalog)
        try:
            with auditing.asking(asked, target, user):
                if asked.method == "GET" and not target.name and asked.truth("watch"):
                    return self._asked_watch(asked, target, user)
                return Verbs(target, asked, user, self._clock()).answer()
        except ConvoyError as e:
            raise refusals.of(e, target, asked.meant) from e

    def _document(self, asked: Request) -> Object | str | None:
        return documents.find(asked.path, self._catalog, asked.headers.get(b"accept", b"").decode("latin-1"))

    def _user(self, asked: Request) -> Any:
        try:
            user = access.verify(asked.bearer, now=self._clock()).user
            USERS.learn(asked.headers[b"authorization"], user.pk)
            return user
        except Forbidden as e:
            raise KubeError(401, f"Unauthorized: {e.message}") from e

    def _asked_watch(self, asked: Request, target: Target, user: Any) -> Watch:
        if "watch" not in target.kind.verbs:
            raise NOT_ALLOWED

        async def still_allowed() -> bool:
            return bool(await self._in_thread(self._may_go_on, asked, target))

        from_now = asked.query.get("sendInitialEvents") == "false"
        return Watch(
            user_id=user.pk,
            kind=target.kind,
            namespaces=readable(target, user),
            wanted=lists.wanted(asked, target.kind),
            since=asked.number("resourceVersion") or (journal.head() if from_now else 0),
            bookmarks=asked.truth("allowWatchBookmarks"),
            initial=asked.truth("sendInitialEvents"),
            as_table=asked.wants_table,
            timeout_s=min(asked.number("timeoutSeconds") or LONGEST_S, LONGEST_S),
            still_allowed=still_allowed,
            clock=self._clock,
        )

    def _may_go_on(self, asked: Request, target: Target) -> bool:
        try:
            readable(target, self._user(asked))
        except (KubeError, Forbidden):
            return False
        return True

    async def _stream(self, stream: lists.Stream, send: Send) -> None:
        """No thread waits for the reader, and one that stops reading is hung up on."""
        pieces = stream.pieces()
        piece: bytes | None = await self._in_thread(next, pieces, None)
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-cache, private")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        while piece is not None:
            body = {"type": "http.response.body", "body": piece, "more_body": True}
            await asyncio.wait_for(send(body), _LONGEST_PAUSE_S)
            piece = await self._in_thread(next, pieces, None)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _watch(self, watch: Watch, receive: Receive, send: Send) -> None:
        """Until it ends or its reader goes away, whichever is first."""
        most = settings.CONVOY_LIMITS.part.watches
        if self._watches[watch.user_id] >= most:
            raise KubeError(429, f"too many watches are open: {most} for one user", details={"retryAfterSeconds": 1})
        self._watches[watch.user_id] += 1
        try:
            await self._told(watch, receive, send)
        finally:
            self._watches[watch.user_id] -= 1
            if not self._watches[watch.user_id]:
                del self._watches[watch.user_id]

    async def _told(self, watch: Watch, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-cache, private")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        telling = asyncio.create_task(self._tell(watch, send))
        leaving = asyncio.create_task(request.gone(receive))
        await asyncio.wait({telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        telling.cancel()
        await asyncio.gather(telling, leaving, return_exceptions=True)

    async def _tell(self, watch: Watch, send: Send) -> None:
        async with aclosing(watch.lines(self._feed, self._in_thread)) as lines:
            async for line in lines:
                await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _with_database(work: Callable[..., Any], *args: Any) -> Any:
    """As a Django request does: no connection is used that is broken or too old."""
    close_old_connections()
    try:
        return work(*args)
    finally:
        close_old_connections()


def _unforeseen(scope: Scope, e: Exception) -> KubeError:
    """Its details go to the log alone, under an id that the caller can name."""
    what, ident = f"{scope['method']} {scope['path']}", secrets.token_hex(8)
    match e:
        case RecursionError():
            return KubeError(400, "the object is nested too deeply")
        case OperationalError() | InterfaceError():
            log.warning("request %s: %s: the database is busy: %s", ident, what, e)
            return KubeError(503, "the database is busy: try again", details={"retryAfterSeconds": 1})
        case DataError():
            log.warning("request %s: %s: %s", ident, what, e)
            return KubeError(400, "the request holds a value the database cannot keep")
    log.error("request %s: %s", ident, what, exc_info=e)
    message = "the database refused" if isinstance(e, DatabaseError) else "an unforeseen error"
    return KubeError(500, f"Internal error occurred: {message}; the log has it as request {ident}")
