"""One kind of one member, listed and then watched, for as long as it takes.

A `Reflector` is a task of an event loop that delivers whole lists and single changes in order. It resumes where it was after a
broken connection, lists again when the member forgot that place, when it was away long enough to have become another one, and
every ten minutes in any case, so that whatever was missed is found. It never gives up and never decides anything.
"""

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from structlog import get_logger

from fleet import metrics
from fleet.kube.resources import Resource
from fleet.member.client import Object, Params
from fleet.member.errors import MemberDenied, MemberError, MemberExpired, MemberMissing
from fleet.member.streaming.client import StreamClient

log = get_logger(__name__)

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Item:
    """One object: where it is, and what the reader made of it."""

    key: Key
    value: Any


@dataclass(frozen=True, slots=True)
class Listed:
    """All objects there are."""

    resource: Resource
    items: list[Item]
    expected: Any = None
    """What the reader's ``expect`` returned before the list was requested."""
    refused: bool = False
    """The member refuses the kind: nothing of it is known, rather than that there is nothing."""


@dataclass(frozen=True, slots=True)
class Changed:
    """One object is new or different, or (``gone``) is no more; then the item is what it last was."""

    resource: Resource
    item: Item
    gone: bool


Delivery = Listed | Changed
_PAUSE_S = (0.2, 5.0)
"""Shortest and longest pause between two tries."""
_EXPECTED_S = 60.0
"""How long that counts which a list has to have, while one try after the other fails."""
_HOPELESS_S = 15.0
"""Pause after an answer that only a person can change: kind not served, rights missing."""


class Reflector:
    """Delivers through ``deliver``, which may wait to slow it down; ends when its task is cancelled."""

    watch_s = 120
    """Length of one watch. One that is silent although its connection lives is noticed after this and the client's timeout;
    a dead connection is noticed by the client's keep-alive."""
    relist_s = 600.0
    optional = False
    """Whether an empty list is delivered when the member refuses the kind, so that nothing waits for it."""

    def __init__(
        self,
        client: StreamClient,
        resource: Resource,
        deliver: Callable[[Delivery], Awaitable[None]],
        rng: random.Random,
        *,
        selector: str = "",
        fields: str = "",
        read: Callable[[Object], Any] = lambda item: item,
        expect: Callable[[], Awaitable[Any]] | None = None,
    ) -> None:
        """``read`` makes of an object what is kept of it, so that whole lists of manifests need not stay in memory.

        ``expect`` is called before a list is requested. What it returns then must be in the list: no clock has to say which of
        the two is older.
        """
        self._client, self.resource, self._deliver = client, resource, deliver
        self._rng, self._read, self._expect = rng, read, expect
        self._expected: Any = None
        self._expected_at = -math.inf
        selectors = {"labelSelector": selector, "fieldSelector": fields}
        self._params: Params = {name: value for name, value in selectors.items() if value}
        self._path = resource.path()
        self._version = ""
        self.listed_at = 0.0
        """When the last list was delivered, on the monotonic clock."""
        self._failures = 0
        self.refused = False
        """The member does not serve this kind, or not to us: there is nothing to be shown of it, until the next list."""

    @property
    def follows(self) -> bool:
        """Whether everything that happens is being delivered."""
        return bool(self._version) and not self._failures

    async def run(self) -> None:
        while True:
            try:
                if not self._version or time.monotonic() - self.listed_at > self.relist_s:
                    await self._list()
                await self._watch()
            except MemberExpired:
                self._version = ""
            except MemberError as e:
                await self._failed(e)

    async def _list(self) -> None:
        items: list[Item] = []
        version = ""
        expected = await self._expected_now()
        async with self._client.collection(self._path, self._params) as pages:
            async for page in pages:
                items += [self._item(item) for item in page["items"]]
                version = (page.get("metadata") or {}).get("resourceVersion") or version
            await self._deliver(Listed(self.resource, items, expected))
        self.listed_at = time.monotonic()
        self._expected_at = -math.inf
        self._version, self._failures, self.refused = version, 0, False

    async def _expected_now(self) -> Any:
        """What was expected at a try that failed must be in the next list too: a member that is away costs few reads of it."""
        if self._expect is not None and time.monotonic() - self._expected_at > _EXPECTED_S:
            self._expected, self._expected_at = await self._expect(), time.monotonic()
        return self._expected

    async def _watch(self) -> None:
        started = time.monotonic()
        events = self._client.watch(
            self._path, resource_version=self._version, params=self._params, timeout_s=self.watch_s, opened=self._opened
        )
        async with aclosing(events):
            async for event in events:
                self._failures = 0
                if event.type != "BOOKMARK":
                    await self._deliver(Changed(self.resource, self._item(event.object), event.type == "DELETED"))
                self._version = event.object["metadata"]["resourceVersion"]
        if time.monotonic() - started < 1.0:
            await asyncio.sleep(_PAUSE_S[0])

    def _opened(self) -> None:
        self._failures = 0

    def _item(self, item: Object) -> Item:
        meta = item["metadata"]
        return Item((meta.get("namespace", ""), meta["name"]), self._read(item))

    async def _failed(self, e: MemberError) -> None:
        """One broken connection is resumed; a member that stays away may come back with another past, so it is listed."""
        self._failures += 1
        metrics.WATCH_RESTARTS.labels(self._client.cluster).inc()
        if self._failures > 1 or e.status:
            self._version = ""
        hopeless = isinstance(e, MemberDenied | MemberMissing)
        if hopeless and not self.refused:
            self.refused = True
            if self.optional:
                await self._deliver(Listed(self.resource, [], refused=True))
        if self._failures == 3 or hopeless:
            log.warning(
                "watch failed",
                cluster=self._client.cluster,
                resource=self.resource.plural,
                tries=self._failures,
                error=str(e),
            )
        shortest, longest = _PAUSE_S
        pause = _HOPELESS_S if hopeless else min(longest, shortest * 2 ** min(self._failures - 1, 10))
        await asyncio.sleep(pause * (0.5 + self._rng.random()))
