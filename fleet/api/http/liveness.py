"""Answers whether this process is alive, before anything else: no limit, no thread, no database and no log is asked.

It may be asked by all and as often as they like, so an answer is to cost next to nothing, whatever the request names.
"""

from fleet.limits.callers import Scope
from fleet.limits.limited import Application, Send
from fleet.limits.seats import Receive

PATHS = ("/livez", "/healthz")
_BODY = b'{"status": "ok"}'
_HEADERS = [
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]


def before(inner: Application) -> Application:
    """The application, behind the answers for these paths."""

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].rstrip("/") not in PATHS:
            return await inner(scope, receive, send)
        is_read = scope["method"] in ("GET", "HEAD")
        body, rest = (_BODY, []) if is_read else (b"", [(b"allow", b"GET, HEAD")])
        headers = [*_HEADERS, (b"content-length", str(len(body)).encode()), *rest]
        await send({"type": "http.response.start", "status": 200 if is_read else 405, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
        return None

    return answering
