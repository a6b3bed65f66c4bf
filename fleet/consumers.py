"""The websocket that says what changed (kind, name, version); REST says what it is.

A socket belongs to a user for as long as the session or token it came with is good, which is asked again every few
seconds, and receives only changes in namespaces that user may read, and of global objects. With Redis, changes come through
the channel layer; without, one task per process follows the journal for all of its sockets.
"""

import asyncio
import contextlib
import json
import logging
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.db import DatabaseError, InterfaceError

from fleet.changes import events, journal
from fleet.changes.repeatable_read import repeatable_read
from fleet.core.security import token_scopes
from fleet.db import clock
from fleet.errors import Forbidden
from fleet.limits.seats import leave_seat, take_seat_again
from fleet.services.auditing import refused_sign_ins
from fleet.services.auditing.refused_sign_ins import Refusal
from fleet.services.authorization import access

log = logging.getLogger(__name__)

PING_S = 15.0
LOOK_S = 4.0
"""Seconds between two looks at the rights of a socket's user."""
FOLLOW_S = 0.25
LONGEST_PAUSE_S = 2.0
"""Between two attempts to read the journal while that fails."""
LONGEST_MESSAGE = 4096
RESUME_LIMIT = 5000
RESUME_S = 60.0
"""In which a client has to take what it missed; one that is slower is closed, and comes again."""
CLOSE_S = 5.0
"""In which such a client has to take the close; then it is hung up on."""
TAKE_S = 2.0
"""In which a client has to take a change, once what it has not read fills all buffers between."""
TURN = 50
"""Changes that are looked at before what else the process has to do gets its turn."""
BEARER = "convoy.bearer."
PLAIN = "convoy.v1"
REFUSED, TOO_MANY, ENDED, TOO_LONG, AWAY = 4401, 4429, 4403, 1009, 1013
MAX_FAILED_LOOKS = 10
"""Looks in a row without an answer of the database, after which a socket is closed: its user comes again."""

_LOOKS = ThreadPoolExecutor(2, thread_name_prefix="rights-of-sockets")
"""Threads of their own: while a thousand sockets are looked at, or the database is away, changes do not wait for it."""

Change = dict[str, Any]
_open: Counter[int] = Counter()


class ChangesConsumer(AsyncWebsocketConsumer):
    """One person's socket. Clients have nothing to say; ``?since=VERSION`` asks for what was missed."""

    user: Any = None
    allowed: frozenset[str] | None = frozenset()
    settled = 0
    """Version up to which everything has certainly been sent: the newest one before it was accepted, or at a heartbeat."""
    heart: asyncio.Task[None] | None = None
    closing: asyncio.Future[None] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Leaves nothing behind, however it ends: one that fails while it sends, say, gets no message to disconnect."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._leave()

    async def connect(self) -> None:
        try:
            await self._connect()
        finally:
            leave_seat()

    async def _connect(self) -> None:
        user = await self._who()
        if user is not None:
            # Read before it is accepted: of all that is committed from here on the client hears, though perhaps after the
            # first heartbeat, so that what it reads once it is accepted stays true.
            self.settled = await database_sync_to_async(journal.head)()
        # Accepted before it is refused: a browser never learns why a handshake failed, but it sees a close code.
        await self.accept(subprotocol=self._subprotocol())
        if user is None:
            await self.close(REFUSED)
            return
        if _open[user.pk] >= settings.CONVOY_LIMITS.sockets:
            await self.close(TOO_MANY)
            return
        self.user, self.follower = user, self._follow()
        _open[user.pk] += 1
        await self._join()

    async def _join(self) -> None:
        await take_seat_again()
        await self.follower.add(self)
        await self._resume()
        self.heart = asyncio.create_task(self._beat())
        self.heart.add_done_callback(self._heart_stopped)

    async def _leave(self) -> None:
        if self.user is None:
            return
        _open[self.user.pk] -= 1
        self.user = None
        if self.heart is not None:
            self.heart.cancel()
        await self.follower.remove(self)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if len(text_data or bytes_data or "") > LONGEST_MESSAGE:
            await self.close(TOO_LONG)

    async def changes(self, message: dict[str, Any]) -> None:
        """From the channel layer, under the name `fleet.changes.events` sends it by."""
        await self.hear(message["changes"])

    async def hear(self, changes: list[Change]) -> None:
        """Others wait no longer than this for a reader that does not read; it is closed, and asks anew when it comes again."""
        if self.closing is not None:
            return
        try:
            await self._send_changes(changes, TAKE_S)
        except TimeoutError:
            self._hang_up()

    def _hang_up(self) -> None:
        self.closing = asyncio.ensure_future(self._close_away())

    async def _close_away(self) -> None:
        with contextlib.suppress(OSError):  # the client has left by then
            await self.close(AWAY)

    async def _send_changes(self, changes: list[Change], each_s: float | None = None) -> None:
        for number, change in enumerate(changes, 1):
            if _hears(self.allowed, change):
                async with asyncio.timeout(each_s):
                    await self.send(json.dumps(change))
            if number % TURN == 0:
                await asyncio.sleep(0)

    async def _beat(self) -> None:
        """Looks at the rights again and again; ends when they are gone, or cannot be looked at."""
        failures, ping_at, now = 0, 0.0, asyncio.get_running_loop().time
        while failures < MAX_FAILED_LOOKS:
            try:
                if await self._who() is None:
                    await self.close(ENDED)
                    return
                if now() >= ping_at:
                    await self._ping()
                    ping_at = now() + PING_S
                failures = 0
            except (DatabaseError, InterfaceError) as e:
                failures += 1
                log.warning("the rights of a websocket cannot be looked at: %s", e)
            await asyncio.sleep(min(LOOK_S, PING_S))
        await self.close(AWAY)

    async def _ping(self) -> None:
        head = await database_sync_to_async(journal.head)()
        await self.send(json.dumps({"type": "ping", "version": self.settled}))
        self.settled = head

    def _heart_stopped(self, heart: asyncio.Task[None]) -> None:
        """No socket stays open whose rights are not looked at any more."""
        error = None if heart.cancelled() else heart.exception()
        if error is not None:
            log.error("the rights of a websocket cannot be looked at: it is closed", exc_info=error)
            self._hang_up()

    async def _resume(self) -> None:
        since = _since(self.scope)
        missed = await database_sync_to_async(_missed)(self.settled if since is None else since)
        leave_seat()  # from here on it waits for its client alone
        try:
            async with asyncio.timeout(RESUME_S):
                if missed is None:
                    await self.send(json.dumps({"type": "reset"}))
                else:
                    await self._send_changes(missed)
        except TimeoutError:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await self.close(AWAY)
            raise StopConsumer from None

    async def _who(self) -> Any:
        """The user now, with the namespaces this user may read now; None when the socket has to go."""
        look = database_sync_to_async(_user, thread_sensitive=False, executor=_LOOKS)
        user, self.allowed = await look(self.scope)
        return user

    def _subprotocol(self) -> str | None:
        """Browsers insist on an answer to what they offered; the plain name is preferred to echoing a token."""
        offered = self.scope.get("subprotocols") or []
        return PLAIN if PLAIN in offered else next((each for each in offered if each.startswith(BEARER)), None)

    def _follow(self) -> "Follower":
        return _GROUP if events.has_layer() else _tailer()


class Follower:
    """Source of changes for the sockets; this one is the channel layer."""

    async def add(self, socket: ChangesConsumer) -> None:
        await socket.channel_layer.group_add(events.CHANGES_GROUP, socket.channel_name)

    async def remove(self, socket: ChangesConsumer) -> None:
        await socket.channel_layer.group_discard(events.CHANGES_GROUP, socket.channel_name)


class Tailer(Follower):
    """Reads the journal once for all sockets of one event loop, and only while there are any."""

    def __init__(self) -> None:
        self.sockets: set[ChangesConsumer] = set()
        self.task: asyncio.Task[None] | None = None

    async def add(self, socket: ChangesConsumer) -> None:
        version = await database_sync_to_async(journal.head)()
        self.sockets.add(socket)
        if self.task is None:
            self.task = asyncio.create_task(self._follow(version))

    async def remove(self, socket: ChangesConsumer) -> None:
        self.sockets.discard(socket)
        if not self.sockets and self.task:
            self.task.cancel()
            self.task = None

    async def _follow(self, version: int) -> None:
        """No error ends it: no socket would hear of anything any more, and none would be closed."""
        pause = FOLLOW_S
        while True:
            await asyncio.sleep(pause)
            try:
                version = await self._send_after(version)
                pause = FOLLOW_S
            except (DatabaseError, InterfaceError) as e:
                pause = min(2 * pause, LONGEST_PAUSE_S)
                log.warning("the journal cannot be read (%s); it is tried again", e)
            except Exception:
                pause = min(2 * pause, LONGEST_PAUSE_S)
                log.exception("the journal cannot be followed; it is tried again")

    async def _send_after(self, version: int) -> int:
        """Returns the version up to which all was sent."""
        entries = await database_sync_to_async(journal.after)(version)
        if not entries:
            return version
        changes = [_as_change(entry) for entry in entries]
        await asyncio.gather(*(each.hear(changes) for each in self.sockets), return_exceptions=True)
        return entries[-1].version


def _hears(allowed: frozenset[str] | None, change: Change) -> bool:
    """Some kinds live in namespaces of the product's own, and are for everybody to read."""
    everybodys = not change["namespace"] or change["kind"] in access.ENTITLEMENT
    return allowed is None or everybodys or change["namespace"] in allowed


_GROUP = Follower()
_tailers: dict[int, tuple[asyncio.AbstractEventLoop, Tailer]] = {}


def _tailer() -> Tailer:
    loop = asyncio.get_running_loop()
    for key in [key for key, (old, _) in _tailers.items() if old.is_closed()]:
        del _tailers[key]
    return _tailers.setdefault(id(loop), (loop, Tailer()))[1]


def _user(scope: Mapping[str, Any]) -> tuple[Any, frozenset[str] | None]:
    user = _by_token(scope) if _token(scope) else _by_session(scope)
    if user is None or not access.roles(user) or not _reads_all_kinds(access.scope_of(user)):
        return None, frozenset()
    return user, access.visible_namespaces(user)


def _reads_all_kinds(token: token_scopes.Scope) -> bool:
    """Changes of every kind are sent, so a token that is for some kinds only is not for this."""
    return token.kinds is None and (token.verbs is None or access.READ in token.verbs)


def _by_token(scope: Mapping[str, Any]) -> Any:
    try:
        return access.verify(_token(scope), now=clock.now()).user
    except Forbidden:
        address = str((scope.get("client") or ("",))[0])
        refused_sign_ins.count(address, Refusal.TOKENS_AT_SOCKETS)
        return None


def _by_session(scope: Mapping[str, Any]) -> Any:
    key = getattr(scope.get("session"), "session_key", None)
    return access.session_user(key) if key else None


def _token(scope: Mapping[str, Any]) -> str:
    """From the header, or for browsers from a subprotocol; never from the address, which ends up in logs."""
    for name, value in scope.get("headers", []):
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return str(value[7:].decode("latin-1").strip())
    offered = scope.get("subprotocols") or []
    return next((str(each[len(BEARER) :]) for each in offered if each.startswith(BEARER)), "")


def _since(scope: Mapping[str, Any]) -> int | None:
    value = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("since", [""])[0]
    return int(value) if value.isascii() and value.isdigit() and len(value) <= 18 else None


def _missed(since: int) -> list[Change] | None:
    """None when it is too much, too long ago, or from another life of the database.

    Read at one moment: of a journal that is compacted meanwhile the beginning would be missing unnoticed. What writes still is
    not waited for, as the socket has joined and hears of it; what is newer than that, and committed, was sent before it joined.
    """
    with repeatable_read():
        tip = journal.tip()
        if not journal.floor() <= since <= tip:
            return None
        with journal.read_until(tip):
            changes = journal.after(since, RESUME_LIMIT + 1)
    return None if len(changes) > RESUME_LIMIT else [_as_change(entry) for entry in changes]


def _as_change(entry: Any) -> Change:
    return {
        "kind": entry.kind,
        "namespace": entry.namespace,
        "name": entry.name,
        "id": entry.object_uid,
        "action": entry.action,
        "version": entry.version,
    }
