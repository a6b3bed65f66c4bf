"""The fleet's Kubernetes-style API: `fleet.kube.server` over database rows, with the fleet's users, audit and proxy.

Everything that touches the database runs in threads of a pool; watches stay on the event loop and share one follower.
"""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import DatabaseError, DataError, InterfaceError, OperationalError, close_old_connections

from fleet.db import clock
from fleet.errors import ConvoyError, Forbidden, Unavailable
from fleet.kube.requests.status import KubeError
from fleet.kube.server import request as http
from fleet.kube.server.app import Answer, Server
from fleet.kube.server.kinds import Namespaces, Object
from fleet.kube.server.open_watches import OpenWatch, OpenWatches
from fleet.kube.server.paths import Catalog
from fleet.kube.server.request import Receive, Request, Scope, Send
from fleet.kube.server.selection import selection
from fleet.kube.server.watching import Frame, Opening, Right, WatchOptions
from fleet.kubeapi import auditing, pod_logs, pod_streams, proxy, refusals, reviews, watching
from fleet.kubeapi.event_watches import WithMembers
from fleet.kubeapi.feed import Feed
from fleet.kubeapi.history import Journal
from fleet.kubeapi.objects.fleet_kinds import ABOUT, Events
from fleet.kubeapi.objects.kinds import Kind, Target
from fleet.kubeapi.objects.metrics import Metrics
from fleet.kubeapi.pod_streams import PodStreams
from fleet.kubeapi.proxy import Proxy
from fleet.limits.callers import USERS
from fleet.limits.seats import take_seat_again
from fleet.models.encrypted import SecretUnreadable
from fleet.services.auditing import refused_sign_ins
from fleet.services.auditing.refused_sign_ins import Refusal
from fleet.services.authorization import access
from fleet.services.members import member_events
from fleet.services.members.member_events import Question

log = logging.getLogger(__name__)

_THREADS = 16
_POLLS = 4
VERSION = "v1.36.0+convoy"
"""The release whose clients are served without a warning: kubectl warns of a server that is more than one minor apart."""
_NO_IMPERSONATION = (
    "impersonation is not supported at the fleet (--as, --as-group, --as-uid; Impersonate-* headers): use a kubeconfig of "
    "that user"
)


class Application(Server[Kind]):
    bookmark_s = 10.0

    def __init__(self, kinds: Sequence[Kind], clock: Callable[[], datetime] = clock.now) -> None:
        super().__init__(Catalog(kinds), Journal(), version=VERSION, title="Convoy")
        self._clock = clock
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="kubeapi")
        self._polls = ThreadPoolExecutor(_POLLS, thread_name_prefix="events-of-members")
        self._feed = Feed(self.run)
        self._watches: Counter[int] = Counter()
        """Open ones of each user, whatever the token: `fleet.limits` counts those of one token."""
        self._open_watches = OpenWatches(self._lost)
        self._proxy = Proxy(self.run, self.authenticate)
        self._pod_streams = PodStreams(self.run, self.authenticate)

    async def run(self, work: Callable[..., Any], *args: Any) -> Any:
        await take_seat_again()
        in_thread = sync_to_async(_with_database, thread_sensitive=False, executor=self._threads)
        result = asyncio.ensure_future(in_thread(work, *args))
        try:
            return await asyncio.shield(result)
        except asyncio.CancelledError:
            # The reader left, but a thread cannot be stopped: the request keeps its seat until it ends, or those who ask and
            # leave would use more threads than there are seats.
            await asyncio.wait({result})
            result.exception()  # no reader is left to answer, and it is no unforeseen error
            raise

    def authenticate(self, request: Request) -> Any:
        try:
            user = access.verify(request.bearer, now=self._clock()).user
            USERS.learn(request.headers[b"authorization"], user.pk)
            return user
        except Forbidden as e:
            if request.bearer:
                refused_sign_ins.count(request.address, Refusal.TOKENS_AT_KUBE)
            raise KubeError(401, f"Unauthorized: {e.message}") from e

    def authorize(self, user: Any, verb: str, target: Target) -> Namespaces:
        """What is read may be read in some namespaces only; what is written must be allowed as a whole."""
        kind = target.kind
        if verb == "get":
            access.require(user, kind.read_verb, kind.name, kind.home(target.namespace, target.name))
        elif verb not in ("list", "watch"):
            right = "delete" if verb in ("delete", "deletecollection") else "apply"
            access.require(user, right, kind.name, kind.home(target.namespace, target.name))
        return readable(target, user) if verb in ("list", "watch", "deletecollection") else None

    def review(self, kind: str, spec: Object, user: Any) -> Object | None:
        return reviews.status(kind, spec, user, self.catalog)

    @contextmanager
    def attempt(self, request: Request, target: Target, user: Any) -> Iterator[None]:
        try:
            with access.asked_by(lambda: user), auditing.asking(request, target, user):
                yield
        except ConvoyError as e:
            raise refusals.of(e, target, request.intended) from e

    @contextmanager
    def streaming(self, user: Any) -> Iterator[None]:
        most = settings.CONVOY_LIMITS.part.watches
        if self._watches[user.pk] >= most:
            raise KubeError(429, f"too many watches are open: {most} for one user", details={"retryAfterSeconds": 1})
        self._watches[user.pk] += 1
        try:
            yield
        finally:
            self._watches[user.pk] -= 1
            if not self._watches[user.pk]:
                del self._watches[user.pk]

    def perform(self, request: Request, target: Target, user: Any) -> Answer:
        """A list of events has those that members have of the fleet's objects; they are asked before rows are read."""
        is_list = request.method == "GET" and not request.is_watch and not target.name
        if is_list and isinstance(target.kind, Events):
            self.authorize(user, "list", target)
            about = selection(request, target.kind).exact
            answer = member_events.of(user, _question(readable(target, user), about))
            request.warnings += answer.warnings
            target = replace(target, kind=target.kind.with_others(answer.events))
        return super().perform(request, target, user)

    def connect(self, request: Request, target: Target, user: Any) -> Answer | None:
        """Metrics are no stored objects: the members are asked for them."""
        if request.method != "GET" or not isinstance(target.kind, Metrics):
            return None
        namespaces = None if target.name else readable(target, user)
        return 200, target.kind.answer(request, namespaces, target.namespace, target.name)

    async def forward(self, scope: Scope, request: Request, receive: Receive, send: Send) -> bool:
        """Raises Forbidden for a request in another user's name: it would be answered with the caller's own rights."""
        if any(name.startswith(b"impersonate-") for name in request.headers):
            await self.run(self.authenticate, request)
            raise KubeError(403, _NO_IMPERSONATION)
        if proxy.cluster_of(request.path):
            await self._proxy.answer(scope, request, receive, send)
            return True
        if (pod := pod_logs.pod_of(request.method, request.path)) is not None:
            await self._pass_log(scope, request, receive, send, *pod)
            return True
        if (stream := pod_streams.stream_path(request.path)) is not None:
            await self._pod_streams.answer(scope, request, receive, send, stream)
            return True
        return False

    async def _pass_log(
        self, scope: Scope, request: Request, receive: Receive, send: Send, namespace: str, name: str
    ) -> None:
        """From the pod's cluster; what is kept of the log where that cannot be asked any more."""
        kept = partial(pod_logs.kept, request, namespace, name, self.authenticate)
        admit = partial(pod_logs.admit, request, namespace, name, self.authenticate)
        try:
            text = await self.run(partial(kept, is_away=False))
            if text is None:
                try:
                    await self._proxy.pass_on(scope, request, receive, send, admit)
                except Unavailable:
                    text = await self.run(partial(kept, is_away=True))
                    if text is None:
                        raise
        except ConvoyError as e:
            raise KubeError(e.status, e.message, details={"name": name, "kind": "pods"}) from e
        if text is not None:
            await http.answer(send, 200, text.content.decode(errors="replace"), [*request.warnings, *text.notes])

    async def watch(self, options: WatchOptions, frame: Frame) -> Opening:
        opening = await watching.begin(options, frame, self._feed, self.run)
        if not isinstance(options.kind, Events):
            return opening
        question = _question(options.namespaces, options.selection.exact)
        ask = partial(self._in_poll_thread, member_events.of, options.user, question)
        return replace(opening, changes=WithMembers(opening.changes, options, ask, self._clock))

    async def _in_poll_thread(self, work: Callable[..., Any], *args: Any) -> Any:
        """Of a few threads of their own: members that do not answer keep no request to the fleet waiting."""
        return await sync_to_async(_with_database, thread_sensitive=False, executor=self._polls)(work, *args)

    def right(self, request: Request, target: Target, namespaces: Namespaces) -> Right:
        return partial(self._open_watches.one, request, target, namespaces)

    async def _lost(self, watches: Sequence[OpenWatch]) -> Collection[OpenWatch] | None:
        try:
            return list(await self.run(self._without_rights, watches))
        except (DatabaseError, InterfaceError) as e:
            log.warning("the rights of %s watches cannot be looked at: %s", len(watches), e)
            return None

    def _without_rights(self, watches: Sequence[OpenWatch]) -> list[OpenWatch]:
        """Each token is looked up once, however many watches it has."""
        users: dict[str, Any] = {}
        for bearer, request in {each.request.bearer: each.request for each in watches}.items():
            with suppress(KubeError):
                users[bearer] = self.authenticate(request)
        return [each for each in watches if not _may_go_on(users.get(each.request.bearer), each)]

    def name_of(self, user: Any) -> str:
        return str(user.get_username())

    def now(self) -> datetime:
        return self._clock()

    def pick(self, letters: str) -> str:
        return secrets.choice(letters)

    def unforeseen(self, scope: Scope, error: Exception) -> KubeError:
        """Its details go to the log alone, under an id that the caller can name."""
        line, ident = f"{scope['method']} {scope['path']}", secrets.token_hex(8)
        match error:
            case ConvoyError():
                return KubeError(error.status, error.message)
            case RecursionError():
                return KubeError(400, "the object is nested too deeply")
            case OperationalError() | InterfaceError():
                log.warning("request %s: %s: the database is busy: %s", ident, line, error)
                return KubeError(503, "the database is busy: try again", details={"retryAfterSeconds": 1})
            case SecretUnreadable():
                log.error("request %s: %s: %s", ident, line, error)
                return KubeError(500, str(error))
            case DataError():
                log.warning("request %s: %s: %s", ident, line, error)
                return KubeError(400, "the request holds a value the database cannot keep")
        log.error("request %s: %s", ident, line, exc_info=error)
        message = "the database refused" if isinstance(error, DatabaseError) else "an unforeseen error"
        return KubeError(500, f"Internal error occurred: {message}; the log has it as request {ident}")


def readable(target: Target, user: Any) -> Namespaces:
    """The namespaces a list of this target shows (None: all); refused when there are none."""
    kind = target.kind
    if access.may(user, kind.read_verb, kind.name, target.namespace):
        return frozenset({target.namespace}) if target.namespace else None
    mine = access.visible_namespaces(user) or frozenset()
    allowed = frozenset(space for space in mine if access.may(user, kind.read_verb, kind.name, space))
    if target.namespace or not allowed:
        raise access.refusal(user, kind.read_verb, kind.name, target.namespace)
    return allowed


def _may_go_on(user: Any, watch: OpenWatch) -> bool:
    """Not when some of the namespaces it began with may no longer be read: the client lists and watches anew."""
    if user is None:
        return False
    try:
        readable_now = readable(watch.target, user)
    except Forbidden:
        return False
    return readable_now is None or (watch.namespaces is not None and watch.namespaces <= readable_now)


def _question(namespaces: Namespaces, about: Mapping[str, str]) -> Question:
    return Question(namespaces, about.get(f"{ABOUT}kind", ""), about.get(f"{ABOUT}name", ""))


def _with_database(work: Callable[..., Any], *args: Any) -> Any:
    """As a Django request does: no connection is used that is broken or too old."""
    close_old_connections()
    try:
        return work(*args)
    finally:
        close_old_connections()
