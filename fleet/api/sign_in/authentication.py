"""Bearer tokens at the REST door. What a token is, and when it counts, is `fleet.services.authorization.access`' business."""

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, SessionAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from fleet.db import clock
from fleet.errors import Forbidden
from fleet.limits.callers import USERS
from fleet.models import Token
from fleet.services.auditing import refused_sign_ins
from fleet.services.auditing.refused_sign_ins import Refusal
from fleet.services.authorization import access


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer cvy_...``; a request without that header is left to the next way of signing in."""

    def authenticate(self, request: Request) -> tuple[Any, Token] | None:
        header = get_authorization_header(request)
        scheme, _, text = header.decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            return None
        try:
            token = access.verify(text.strip(), now=clock.now())
        except Forbidden as e:
            refused_sign_ins.count(str(request.META.get("REMOTE_ADDR", "")), Refusal.TOKENS_AT_REST)
            raise AuthenticationFailed(e.message) from e
        USERS.learn(header, token.user_id)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="convoy"'


class CountedSession(SessionAuthentication):
    """As Django REST framework has it; and all sessions and tokens of a user count as one caller."""

    def authenticate(self, request: Request) -> tuple[Any, None] | None:
        authenticated = super().authenticate(request)
        if authenticated is not None and (key := request._request.session.session_key):
            USERS.learn(key.encode("latin-1"), authenticated[0].pk)
        return authenticated


def user_of_now(request: Request) -> Any:
    """The user of a request that is still being answered, if its credentials are still good; else None."""
    if isinstance(request.auth, Token):
        text = get_authorization_header(request).decode("latin-1").partition(" ")[2]
        try:
            return access.verify(text.strip(), now=clock.now()).user
        except Forbidden:
            return None
    key = request._request.session.session_key
    return access.session_user(key) if key else None


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # as below
    """The cookie, as the OpenAPI document names it for REST framework's own."""

    target_class = CountedSession
    name = "cookieAuth"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # drf-spectacular leaves its __init_subclass__ untyped
    """Describes the Authorization header in the OpenAPI document."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "cvy_..."}
