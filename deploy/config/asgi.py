"""One web process: websockets stay async, plain HTTP goes to the WSGI application in threads.

Synchronous Django views under plain ASGI run at a fifth of their speed; mounted through a2wsgi they do not.
"""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.config.settings")

from a2wsgi import WSGIMiddleware  # noqa: E402
from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402
from django.urls import path  # noqa: E402

from deploy.config.wsgi import application as plain  # noqa: E402
from fleet.consumers import ChangesConsumer  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": WSGIMiddleware(plain, workers=16),
        "websocket": AllowedHostsOriginValidator(
            AuthMiddlewareStack(URLRouter([path("ws/changes/", ChangesConsumer.as_asgi())]))
        ),
    }
)
