"""Bearer tokens at the REST door. What a token is, and when it counts, is `fleet.services.access`' business."""

from typing import Any

from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from fleet.errors import Forbidden
from fleet.models import Token
from fleet.services import access


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer cvy_...``; a request without that header is left to the next way of signing in."""

    def authenticate(self, request: Request) -> tuple[Any, Token] | None:
        scheme, _, text = get_authorization_header(request).decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            return None
        try:
            token = access.verify(text.strip(), now=timezone.now())
        except Forbidden as e:
            raise AuthenticationFailed(e.message) from e
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="convoy"'


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # drf-spectacular leaves its __init_subclass__ untyped
    """Describes the Authorization header in the OpenAPI document."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "cvy_..."}
