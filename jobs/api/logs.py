"""A job's log as plain text, line by line while it is written. Few may follow at once: each takes a thread of the server."""

from collections.abc import Generator, Iterator
from threading import BoundedSemaphore

from django.http import StreamingHttpResponse
from rest_framework import serializers

from fleet.errors import ConvoyError, Unavailable

FOLLOWERS = BoundedSemaphore(8)
"""Half of the threads of a web process."""


class LogsQuery(serializers.Serializer[dict[str, object]]):
    """What part of which pod's log."""

    pod = serializers.CharField(max_length=253, required=False, default="")
    role = serializers.CharField(max_length=63, required=False, default="")
    index = serializers.IntegerField(min_value=0, max_value=1_000_000, required=False, default=0)
    follow = serializers.BooleanField(required=False, default=False)
    tail = serializers.IntegerField(min_value=0, max_value=1_000_000, required=False, default=None, allow_null=True)


def plain_text(lines: Iterator[bytes], *, follow: bool) -> StreamingHttpResponse:
    """Refusals that come before the first line are raised here, and become problem details."""
    if follow and not FOLLOWERS.acquire(blocking=False):
        raise Unavailable("too many logs are followed at this moment: end one, or ask without follow")
    try:
        first = next(lines, None)
    except BaseException:
        if follow:
            FOLLOWERS.release()
        raise
    body = Body(first, lines, follow)
    response = StreamingHttpResponse(body, content_type="text/plain; charset=utf-8")
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    return response


class Body:
    """The lines with their ends; gives its place back however the answer ends."""

    def __init__(self, first: bytes | None, rest: Iterator[bytes], follow: bool) -> None:
        self._lines = self._all(first, rest)
        self._rest = rest
        self._held = follow

    def __iter__(self) -> Iterator[bytes]:
        return self._lines

    def close(self) -> None:
        """The server calls this also when the reader went away."""
        self._lines.close()
        close = getattr(self._rest, "close", None)
        if close is not None:
            close()
        if self._held:
            self._held = False
            FOLLOWERS.release()

    def _all(self, first: bytes | None, rest: Iterator[bytes]) -> Generator[bytes, None, None]:
        if first is None:
            return
        yield first + b"\n"
        try:
            for line in rest:
                yield line + b"\n"
        except ConvoyError as e:
            yield f"convoy: {e.message}\n".encode()
