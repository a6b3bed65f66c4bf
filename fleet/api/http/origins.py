"""Which pages may open a websocket: those that Django lets change something, by the same comparison.

A browser sends the session's cookie with a websocket whichever page opens it, and to every port of a host: the page of a pod's
port, forwarded to the same machine, would read with it what the person at the browser may read.
"""

from io import BytesIO
from typing import Any, cast

from channels.security.websocket import WebsocketDenier
from django.core.handlers.asgi import ASGIRequest
from django.middleware.csrf import CsrfViewMiddleware

_SCHEMES = {"ws": "http", "wss": "https"}
_csrf: Any = cast(Any, CsrfViewMiddleware)(lambda request: None)


class OwnOriginValidator:
    """Refuses a handshake whose ``Origin`` is neither the address that it was sent to nor one of ``CSRF_TRUSTED_ORIGINS``."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await (self._application if _is_own(scope) else WebsocketDenier())(scope, receive, send)


def _is_own(scope: Any) -> bool:
    scheme = scope.get("scheme", "ws")
    request = ASGIRequest({**scope, "method": "GET", "scheme": _SCHEMES.get(scheme, scheme)}, BytesIO())
    return "HTTP_ORIGIN" in request.META and bool(_csrf._origin_verified(request))
