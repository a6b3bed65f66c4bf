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
Read = Callable[[int], tuple[bytes, bool] | None]
"""What a container printed from an offset on, and whether no more will come; None before it has started."""
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


@runtime_checkable
class InitSource(Protocol):
    """The output of init containers."""

    def of_init(
        self, namespace: str, name: str, container: str, offset: int, *, former: bool
    ) -> tuple[bytes, bool] | None:
        """As `LogSource.read`; ``former``: before the container's last restart, if there was one."""


def log(request: Request, target: Target, pod: Object, source: LogSource | None, ending: Callable[[], bool]) -> Answer:
    if not pod["spec"].get("nodeName"):
        return 200, ""
    container = _container(request, target, pod)
    if request.truth("previous"):
        return 200, _former(request, target, container, pod, source)
    read = _reader(target, container, pod, source)
    first = read(0)
    if first is None:
        raise KubeError(400, _not_started(container, pod))
    text, ended = first
    return Chunks(_followed(request, _Reader(request), read, text, ended, ending), b"text/plain")


def _container(request: Request, target: Target, pod: Object) -> str:
    names = [each["name"] for part in ("containers", "initContainers") for each in pod["spec"].get(part) or []]
    name = request.query.get("container") or names[0]
    if name not in names:
        raise KubeError(400, f"container {name} is not valid for pod {target.name}")
    return name


def _is_init(container: str, pod: Object) -> bool:
    return any(each["name"] == container for each in pod["spec"].get("initContainers") or [])


def _reader(target: Target, container: str, pod: Object, source: LogSource | None) -> Read:
    at = (target.namespace, target.name)
    if not _is_init(container, pod):
        return lambda offset: source.read(*at, offset) if source else None
    return lambda offset: (
        source.of_init(*at, container, offset, former=False) if isinstance(source, InitSource) else None
    )


def _former(request: Request, target: Target, container: str, pod: Object, source: object) -> str:
    at = (target.namespace, target.name)
    if _is_init(container, pod):
        read = source.of_init(*at, container, 0, former=True) if isinstance(source, InitSource) else None
        text = read[0] if read else None
    else:
        text = source.former(*at) if isinstance(source, FormerSource) else None
    if text is None:
        raise KubeError(400, f'previous terminated container "{container}" in pod "{target.name}" not found')
    return _Reader(request).sent(_tail(text, request.query.get("tailLines"))).decode(errors="replace")


async def _followed(
    request: Request, reader: "_Reader", read: Read, text: bytes, ended: bool, ending: Callable[[], bool]
) -> AsyncGenerator[bytes]:
    offset = len(text)
    yield reader.sent(_tail(text, request.query.get("tailLines")))
    while request.truth("follow") and not ended and not ending() and not reader.has_all:
        await asyncio.sleep(_FOLLOW_S)
        more = read(offset)
        if more is None:
            return
        text, ended = more
        offset += len(text)
        yield reader.sent(text)


def _not_started(container: str, pod: Object) -> str:
    status = pod.get("status") or {}
    statuses = [each for part in ("initContainerStatuses", "containerStatuses") for each in status.get(part) or []]
    waits = [(each.get("state") or {}).get("waiting") or {} for each in statuses if each["name"] == container]
    reason = next((each["reason"] for each in waits if each.get("reason")), "ContainerCreating")
    return f'container "{container}" in pod "{pod["metadata"]["name"]}" is waiting to start: {reason}'


class _Reader:
    """What is sent to one reader: with a time before each line, and no more bytes than it asked for.

    When a line was printed is not known: all have one time.
    """

    def __init__(self, request: Request) -> None:
        self._left = request.number("limitBytes") or None
        self._is_stamped, self._is_new_line = request.truth("timestamps"), True

    @property
    def has_all(self) -> bool:
        return self._left == 0

    def sent(self, text: bytes) -> bytes:
        text = self._stamped(text) if self._is_stamped else text
        if self._left is not None:
            text = text[: self._left]
            self._left -= len(text)
        return text

    def _stamped(self, text: bytes) -> bytes:
        lines = list(BytesIO(text))
        begun = b"" if self._is_new_line or not lines else lines.pop(0)
        self._is_new_line = text.endswith(b"\n") if text else self._is_new_line
        return begun + b"".join(_TIME + line for line in lines)


def _tail(text: bytes, lines: str | None) -> bytes:
    if lines is None or not lines.isdigit():
        return text
    return b"".join(list(BytesIO(text))[-int(lines) :]) if int(lines) else b""
