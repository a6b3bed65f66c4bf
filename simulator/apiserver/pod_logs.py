"""The logs of pods, whole or followed."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from io import BytesIO
from typing import Protocol, runtime_checkable

from fleet.kube.requests.status import KubeError
from fleet.kube.server.app import Answer, Chunks
from fleet.kube.server.request import Request
from simulator.apiserver.objects.catalog import Target
from simulator.apiserver.objects.store import Object

_FOLLOW_S = 0.1
_TIME = b"2026-01-01T00:00:00.000000000Z "


class LogSource(Protocol):
    """The output of pods, from the component that runs them."""

    def read(self, namespace: str, name: str, offset: int) -> tuple[bytes, bool] | None:
        """What was printed from ``offset`` on, and whether no more will come; None: no log of this pod."""


@runtime_checkable
class FormerSource(Protocol):
    """The output of containers before their last restart."""

    def former(self, namespace: str, name: str) -> bytes | None:
        """What the run before this one printed; None where there was none."""


def log(request: Request, target: Target, pod: Object, source: LogSource | None, ending: Callable[[], bool]) -> Answer:
    if not pod["spec"].get("nodeName"):
        return 200, ""
    if request.truth("previous"):
        return 200, _former(request, target, pod, source)
    first = source.read(target.namespace, target.name, 0) if source else None
    if source is None or first is None:
        raise KubeError(400, _not_started(pod))
    text, ended = first
    return Chunks(_followed(request, target, source, text, ended, ending), b"text/plain")


def _former(request: Request, target: Target, pod: Object, source: object) -> str:
    text = source.former(target.namespace, target.name) if isinstance(source, FormerSource) else None
    if text is None:
        container = pod["spec"]["containers"][0]["name"]
        raise KubeError(400, f'previous terminated container "{container}" in pod "{target.name}" not found')
    return _shown(text, request).decode(errors="replace")


async def _followed(
    request: Request, target: Target, source: LogSource, text: bytes, ended: bool, ending: Callable[[], bool]
) -> AsyncGenerator[bytes]:
    yield _shown(text, request)
    offset = len(text)
    while request.truth("follow") and not ended and not ending():
        await asyncio.sleep(_FOLLOW_S)
        more = source.read(target.namespace, target.name, offset)
        if more is None:
            return
        text, ended = more
        offset += len(text)
        yield text


def _not_started(pod: Object) -> str:
    container = pod["spec"]["containers"][0]["name"]
    return f'container "{container}" in pod "{pod["metadata"]["name"]}" is waiting to start: ContainerCreating'


def _shown(text: bytes, request: Request) -> bytes:
    """The last lines. When each was printed is not known: with ``timestamps`` all have one time."""
    text = _tail(text, request.query.get("tailLines"))
    if not request.truth("timestamps"):
        return text
    return b"".join(_TIME + line for line in BytesIO(text))


def _tail(text: bytes, lines: str | None) -> bytes:
    if lines is None or not lines.isdigit():
        return text
    return b"".join(list(BytesIO(text))[-int(lines) :]) if int(lines) else b""
