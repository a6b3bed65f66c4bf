"""The end of a container's log, read by Convoy itself from the pod's member and within bounds: a tenant may write without end.

Logs that a person reads are streamed instead (`jobs.services.inspect.logs`, `fleet.kubeapi.pod_logs`).
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from time import monotonic

from fleet.core.members import log_text
from fleet.kube.resources import PODS
from fleet.member.client import MemberClient
from fleet.member.errors import MemberAway
from fleet.models import Pod

ANSWER_S = 5.0
_LARGEST = 16
"""Times the bytes that are wanted: an answer that is larger is asked for again with fewer lines."""


@dataclass(frozen=True, slots=True)
class Bounds:
    lines: int = 400
    bytes: int = 512 * 1024


@dataclass(frozen=True, slots=True)
class Source:
    """One container's log: the run that goes on or was the last, with ``previous`` the one before the last restart."""

    namespace: str
    pod: str
    container: str = ""
    """Empty for a pod of one container."""
    previous: bool = False
    timestamps: bool = False
    """Each line begins with the time at which the kubelet received it."""


def text(
    client: MemberClient, pod: Pod, *, container: str = "", previous: bool = False, timestamps: bool = False
) -> str:
    """The last lines of the pod's log. Raises `MemberError`. Call it outside of a transaction."""
    source = Source(pod.namespace, pod.name, container, previous, timestamps)
    until = monotonic() + ANSWER_S
    content, _ = tail(client, source, Bounds(), read_timeout_s=ANSWER_S, is_over=lambda: monotonic() > until)
    return content.decode("utf-8", "replace")


def tail(
    client: MemberClient, source: Source, bounds: Bounds, *, read_timeout_s: float, is_over: Callable[[], bool]
) -> tuple[bytes, bool]:
    """The last whole lines within the bounds, and whether there are more before them.

    Members count lines, and count bytes from the front only, so that the end of long lines is found by asking for fewer. Raises
    `MemberError`, MemberAway also when the time ``is_over``. Call it outside of a transaction.
    """
    for most in (bounds.lines, max(bounds.lines // 32, 1), 1):
        lines = _lines(client, source, most, read_timeout_s, is_over)
        kept = log_text.last_bytes(lines, bounds.bytes, _LARGEST * bounds.bytes)
        if kept is not None:
            content, is_cut = kept
            return content, is_cut or content.count(b"\n") >= most
    return b"", True


def _lines(
    client: MemberClient, source: Source, most: int, read_timeout_s: float, is_over: Callable[[], bool]
) -> Iterator[bytes]:
    """The last lines, with their ends."""
    params = {"tailLines": str(most)}
    params |= {"container": source.container} if source.container else {}
    params |= {"previous": "true"} if source.previous else {}
    params |= {"timestamps": "true"} if source.timestamps else {}
    path = PODS.path(source.namespace, source.pod, "log")
    with closing(client.stream_lines(path, params, read_timeout_s=read_timeout_s)) as lines:  # type: ignore[type-var]  # a generator
        for line in lines:
            if is_over():
                raise MemberAway(f"the log of {source.container or source.pod} did not come in time")
            yield line + b"\n"
