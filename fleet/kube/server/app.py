"""The ASGI application of an API server: authenticate, find the document, object or watch, authorize, answer.

Every error is answered with a Status. The methods that a subclass supplies come first in the class.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractContextManager, aclosing, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic

from fleet.kube.requests.status import KubeError, unknown_path
from fleet.kube.server import request as http
from fleet.kube.server import reviews
from fleet.kube.server.documents import OPEN, Documents
from fleet.kube.server.kinds import History, Namespaces, Object
from fleet.kube.server.lists import Stream
from fleet.kube.server.paths import Catalog, K, Target, parse
from fleet.kube.server.request import Receive, Request, Scope, Send
from fleet.kube.server.selection import selection
from fleet.kube.server.verbs import Verbs, require_taken, verb_of
from fleet.kube.server.watching import BOOKMARK_S, LONGEST_S, Frame, Opening, Right, Watch, WatchOptions

log = logging.getLogger(__name__)

_LONGEST_PAUSE_S = 60.0
"""How long the reader of a long list may pause before the connection is closed."""


@dataclass(frozen=True, slots=True)
class Chunks:
    """An answer without a length: a watch, or a log that is followed."""

    content: AsyncGenerator[bytes]
    kind: bytes = b"application/json"


Answer = tuple[int, Object | str | Stream] | Chunks


class Server(ABC, Generic[K]):
    any_text = False
    """Whether bodies may hold text that a database cannot keep."""
    bookmark_s = BOOKMARK_S

    def __init__(self, catalog: Catalog[K], history: History, *, version: str, title: str = "Kubernetes") -> None:
        self.catalog, self.history = catalog, history
        self._documents = Documents(catalog, version, title)

    @abstractmethod
    def authenticate(self, request: Request) -> Any:
        """The user; raises Unauthorized."""

    @abstractmethod
    def authorize(self, user: Any, verb: str, target: Target[K]) -> Namespaces:
        """The namespaces in which the user may do this, of all that the target names; raises Forbidden when there are none."""

    @abstractmethod
    def review(self, kind: str, spec: Object, user: Any) -> Object | None:
        """The status of a review of what a user may do; None for a kind of review that is not served."""

    @abstractmethod
    async def watch(self, options: WatchOptions, frame: Frame) -> Opening:
        """Begins a watch of the storage."""

    def name_of(self, user: Any) -> str:
        """The name under which writes are recorded."""
        return str(user)

    @abstractmethod
    def now(self) -> datetime:
        """The current time."""

    @abstractmethod
    def pick(self, letters: str) -> str:
        """A random one of the letters, for generated names."""

    def connect(self, request: Request, target: Target[K], user: Any) -> Answer | None:
        """The answer of a subresource that is no part of the object; None for every other target."""
        return None

    def right(self, request: Request, target: Target[K], namespaces: Namespaces) -> Right | None:
        """Whether a watch of these namespaces may go on, while it is open; None where rights do not end meanwhile."""
        return None

    async def run(self, work: Callable[..., Any], *args: Any) -> Any:
        """Calls a function that uses the storage. Override it to use a thread if the storage blocks."""
        return work(*args)

    @contextmanager
    def attempt(self, request: Request, target: Target[K], user: Any) -> Iterator[None]:
        """Around what is done for one request: records it, and translates errors of the storage."""
        yield

    def streaming(self, user: Any) -> AbstractContextManager[None]:
        """Around an answer without a length; raises TooManyRequests."""
        return nullcontext()

    async def forward(self, scope: Scope, request: Request, receive: Receive, send: Send) -> bool:
        """Whether the request was for another server, and has been passed on."""
        return False

    def unforeseen(self, scope: Scope, error: Exception) -> KubeError:
        """The Status for an error that nothing translated; its details go to the log alone."""
        if isinstance(error, RecursionError):
            return KubeError(400, "the object is nested too deeply")
        log.error("request %s %s", scope["method"], scope["path"], exc_info=error)
        return KubeError(500, "Internal error occurred: an unforeseen error")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request. Every error inside is answered with a Status."""
        if scope["type"] != "http":
            return
        begun, warnings = False, []

        async def sending(message: dict[str, Any]) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            request = await http.read(scope, receive, any_text=self.any_text)
            if request is not None:
                warnings = request.warnings
                await self._serve(scope, request, receive, sending)
            return
        except KubeError as e:
            error = e
        except Exception as e:  # noqa: BLE001 - nothing is above it but the server, which would answer in plain text
            error = self.unforeseen(scope, e)
        if not begun:  # an answer that has begun is left without its end: the server hangs up on it
            await http.answer(send, error.code, error.as_status(), warnings)

    async def _serve(self, scope: Scope, request: Request, receive: Receive, send: Send) -> None:
        if any("\x00" in text for text in (request.path, *request.query.values())):
            raise KubeError(400, "the URL contains a zero byte")
        if request.too_large:
            raise KubeError(413, f"Request entity too large: limit is {http.MAX_BODY}")
        if request.method == "GET" and request.path.rstrip("/") in OPEN and not request.bearer:
            return await http.answer(send, 200, self._documents.find(request.path) or "", [])
        if await self.forward(scope, request, receive, send):
            return None
        user, answer = await self.run(self._rendered, request)
        if isinstance(answer, Chunks):
            with self.streaming(user):
                return await self._until_disconnected(answer, receive, send)
        code, document = answer
        if isinstance(document, Stream):
            return await self._stream(document, send)
        return await http.answer(send, code, document, request.warnings)

    def _rendered(self, request: Request) -> tuple[Any, Chunks | tuple[int, Stream | http.Rendered]]:
        """A long answer is encoded where it was made: the event loop, which all requests share, only sends it."""
        user, answer = self._answer(request)
        if isinstance(answer, Chunks):
            return user, answer
        code, document = answer
        return user, (code, document if isinstance(document, Stream) else http.rendered(document))

    def _answer(self, request: Request) -> tuple[Any, Answer]:
        user = self.authenticate(request)
        if request.method == "GET":
            document = self._documents.find(request.path, request.accept)
            if document is not None:
                return user, (200, document)
        if review := reviews.kind_of(request):
            status = self.review(review, reviews.spec_of(request), user)
            if status is None:
                raise unknown_path()
            return user, (201, reviews.answer(request, review, status))
        target = parse(request.path, self.catalog)
        with self.attempt(request, target, user):
            return user, self.perform(request, target, user)

    def perform(self, request: Request, target: Target[K], user: Any) -> Answer:
        verb = verb_of(request, target)
        namespaces = self.authorize(user, verb, target)
        require_taken(verb, target)
        if verb == "watch":
            return self._watch(request, target, user, namespaces)
        if (answer := self.connect(request, target, user)) is not None:
            return answer
        verbs = Verbs(self.history, target, request, self.name_of(user), self.now(), self.pick)
        if verb in ("get", "list"):
            return 200, verbs.read(verb, namespaces)
        return verbs.change(verb, namespaces)

    def _watch(self, request: Request, target: Target[K], user: Any, namespaces: Namespaces) -> Chunks:
        from_now = request.query.get("sendInitialEvents") == "false"
        since = request.number("resourceVersion") or (self.history.version() if from_now else 0)
        initial = request.truth("sendInitialEvents")
        watch = Watch(
            WatchOptions(target.kind, namespaces, selection(request, target.kind), since, initial, user),
            bookmarks=request.truth("allowWatchBookmarks"),
            timeout_s=min(request.number("timeoutSeconds") or LONGEST_S, LONGEST_S),
            include=request.query.get("includeObject", "") if request.wants_table else None,
            clock=self.now,
            right=self.right(request, target, namespaces),
            bookmark_s=self.bookmark_s,
        )
        return Chunks(watch.lines(self.watch))

    async def _stream(self, stream: Stream, send: Send) -> None:
        """Sends a long list. No thread waits for the reader; if it stops reading, the connection is closed."""
        pieces = stream.pieces()
        first = await self.run(next, pieces)

        async def chunks() -> AsyncGenerator[bytes]:
            yield first
            while (piece := await self.run(next, pieces, None)) is not None:
                yield piece

        await http.stream(send, chunks(), pause_s=_LONGEST_PAUSE_S)

    async def _until_disconnected(self, answer: Chunks, receive: Receive, send: Send) -> None:
        """Sends the chunks until they end or the reader leaves, whichever is first."""

        async def sending() -> None:
            async with aclosing(answer.content):
                await http.stream(send, answer.content, answer.kind)

        tasks = asyncio.create_task(sending()), asyncio.create_task(http.disconnected(receive))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            sent, _ = await asyncio.gather(*tasks, return_exceptions=True)
        if isinstance(sent, Exception):
            raise sent
