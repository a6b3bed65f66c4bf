"""One web process: websockets, logs and exports stay async, the rest of HTTP goes to the WSGI application in threads.

Synchronous Django views under plain ASGI run at a fifth of their speed; mounted through a2wsgi they do not. But a2wsgi does
not notice a client that disconnects, so logs, which may be followed for hours, are served by Django's own ASGI handler; as are
exports, which are too long to be kept until they are read. All other answers are: no thread waits for a reader.
"""

import os
from functools import partial
from typing import Any, cast

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.config.settings")

from a2wsgi import WSGIMiddleware  # noqa: E402
from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.conf import settings  # noqa: E402
from django.core.asgi import get_asgi_application  # noqa: E402
from django.urls import get_resolver, path, re_path  # noqa: E402

from deploy.config.http import behind  # noqa: E402
from deploy.config.wsgi import application as plain  # noqa: E402
from fleet import gc_tuning  # noqa: E402
from fleet.api.http import liveness, readiness  # noqa: E402
from fleet.api.http.limits import refusal, sort  # noqa: E402
from fleet.api.http.origins import OwnOriginValidator  # noqa: E402
from fleet.consumers import ChangesConsumer  # noqa: E402
from fleet.limits.limited import Limited, Sort  # noqa: E402
from fleet.services.auditing import refused_sign_ins  # noqa: E402

# Channels routes applications by Django's paths, whose types know views only.
_streaming: Any = get_asgi_application()
_NO_LIMIT = 0
"""Of the parts of an answer that wait for its reader: a thread that had to wait with them would serve no other request."""
_others = WSGIMiddleware(cast(Any, plain), workers=settings.CONVOY_LIMITS.seats, send_queue_size=_NO_LIMIT)
_sign_ins = WSGIMiddleware(cast(Any, plain), workers=settings.CONVOY_LIMITS.hashing, send_queue_size=_NO_LIMIT)
"""Threads of their own: checking a password keeps one busy for a second by design."""


async def _views(scope: Any, receive: Any, send: Any) -> None:
    await (_sign_ins if sort(scope) is Sort.SIGN_IN else _others)(scope, receive, send)


_changes: Any = ChangesConsumer.as_asgi()
_http: list[Any] = [
    re_path(r"^api/v1/jobs/([^/]+/logs|export)/$", _streaming),
    re_path(r"", cast(Any, _views)),
]
_websockets: list[Any] = [path("ws/changes/", _changes)]
_router: Any = ProtocolTypeRouter(
    {
        "http": URLRouter(_http),
        "websocket": OwnOriginValidator(AuthMiddlewareStack(URLRouter(_websockets))),
    }
)

_sign_in_refused = partial(refused_sign_ins.count, refusal=refused_sign_ins.Refusal.PASSWORDS)
_limited = Limited(_router, settings.CONVOY_LIMITS, sort, refusal, _sign_in_refused)

application = liveness.before(readiness.before(behind(settings.CONVOY_TRUSTED_PROXIES, _limited)))

_ = get_resolver().url_patterns  # every view is loaded now, not with the first request
gc_tuning.shorten()
