"""The answers that go on: watches, and logs that are followed."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

from fleet.kube.status import KubeError
from simulator.apiserver import lists
from simulator.apiserver.paths import Target
from simulator.apiserver.request import Request
from simulator.apiserver.store import Object, Store
from simulator.apiserver.watching import Watch, Watcher

_FOLLOW_S = 0.1
_WATCH_S = 1800.0


class LogSource(Protocol):
    """The output of pods, from the component that runs them."""

    def read(self, namespace: str, name: str, offset: int) -> tuple[bytes, bool] | None:
        """What was printed from ``offset`` on, and whether no more will come; None: no log of this pod."""


async def watch(
    request: Request, target: Target, store: Store, stopping: Callable[[], bool], wakers: set[Callable[[], None]]
) -> None:
    """``wakers``: what the server calls to make its open streams look around, as when it stops."""
    query, resource = request.query, target.served.resource
    since = query.get("resourceVersion") or "0"
    if not (since.isascii() and since.isdigit()):
        raise KubeError(400, f"Invalid value: {since!r}: resourceVersion must be a number")
    wanted = Watch(
        (resource.group, resource.plural),
        resource.api_version,
        resource.kind,
        target.namespace,
        lists.wanted(query, target.served),
        int(since) or None,
        request.truth("allowWatchBookmarks"),
        _seconds(query.get("timeoutSeconds") or ""),
        partial(_shown, request, target),
        request.truth("sendInitialEvents"),
    )
    await request.begin(b"application/json")
    watcher = Watcher(wanted, store, request.faults)
    wakers.add(watcher.wake)
    leaving = asyncio.create_task(_wake_when_gone(request, watcher))
    try:
        async for lines in watcher.lines():
            if stopping() or request.gone:
                break
            await request.more(lines)
    finally:
        leaving.cancel()
        wakers.discard(watcher.wake)
    await request.end()


async def _wake_when_gone(request: Request, watcher: Watcher) -> None:
    await request.disconnected()
    watcher.wake()


async def log(
    request: Request, target: Target, pod: Object, source: LogSource | None, stopping: Callable[[], bool]
) -> None:
    if not pod["spec"].get("nodeName"):
        return await request.whole(200, b"", b"text/plain")
    first = source.read(target.namespace, target.name, 0) if source else None
    if source is None or first is None:
        raise KubeError(400, _not_started(pod))
    text, ended = first
    await request.begin(b"text/plain")
    await request.more(_tail(text, request.query.get("tailLines")))
    offset = len(text)
    while request.truth("follow") and not ended and not (stopping() or request.gone):
        await asyncio.sleep(_FOLLOW_S)
        more = source.read(target.namespace, target.name, offset)
        if more is None:
            break
        text, ended = more
        offset += len(text)
        await request.more(text)
    return await request.end()


def _shown(request: Request, target: Target, found: Object) -> Object:
    shown = lists.in_version(found, target.served.resource.api_version)
    return lists.printed(target.served, shown, whole=request.wants_objects) if request.wants_table else shown


def _not_started(pod: Object) -> str:
    container = pod["spec"]["containers"][0]["name"]
    return f'container "{container}" in pod "{pod["metadata"]["name"]}" is waiting to start: ContainerCreating'


def _seconds(text: str) -> float:
    return float(text) if text.isascii() and text.isdigit() and int(text) else _WATCH_S


def _tail(text: bytes, lines: str | None) -> bytes:
    if lines is None or not lines.isdigit():
        return text
    return b"".join(text.splitlines(keepends=True)[-int(lines) :]) if int(lines) else b""
