"""Signing in and out, and who one is: the console's session, one's own tokens, the one-time link."""

from typing import Any, cast

from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.middleware.csrf import get_token
from django.utils import timezone
from django.utils.html import escape
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, viewsets
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import OfOneself, SignedIn
from fleet.api.serializers import (
    MeSerializer,
    MintedTokenSerializer,
    NewTokenSerializer,
    SessionSerializer,
    SignInSerializer,
    TokenSerializer,
    new_token,
)
from fleet.errors import InvalidInput
from fleet.models import Token
from fleet.services.authorization import access
from fleet.services.clusters import process_pods

BACKEND = "django.contrib.auth.backends.ModelBackend"


class SessionView(APIView):
    """A browser's session. GET hands out the CSRF cookie that POST and DELETE want back in ``X-CSRFToken``."""

    permission_classes = [AllowAny]

    @extend_schema(responses=SessionSerializer)
    def get(self, request: Request) -> Response:
        get_token(request._request)
        who = {"signed_in": request.user.is_authenticated, "username": request.user.get_username()}
        return Response({**who, "process_pods": bool(process_pods.namespaces())})

    @extend_schema(request=SignInSerializer, responses=MeSerializer)
    def post(self, request: Request) -> Response:
        SessionAuthentication().enforce_csrf(request)
        given = SignInSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        plain = request._request
        user = authenticate(request=plain, **given.validated_data)
        if user is None:
            self._refuse(plain)
        login(plain, user)
        return Response(MeSerializer(me(user)).data)

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request) -> Response:
        SessionAuthentication().enforce_csrf(request)
        logout(request._request)
        return Response(status=204)

    def _refuse(self, plain: HttpRequest) -> None:
        """Its own answer for a lock-out: the middleware of the limiter would send a page."""
        if wait := getattr(plain, "wait_s", 0):
            raise Throttled(wait=wait, detail="too many attempts to sign in as this user: try again in a moment")
        if getattr(plain, "axes_locked_out", False):
            plain.axes_locked_out = False  # type: ignore[attr-defined]  # axes reads and writes it
            raise Throttled(detail="too many failed attempts: wait a quarter of an hour, or ask for a sign-in link")
        raise AuthenticationFailed("the user name or the password is wrong")


class MeView(APIView):
    permission_classes = [SignedIn]

    @extend_schema(responses=MeSerializer)
    def get(self, request: Request) -> Response:
        return Response(MeSerializer(me(request.user)).data)


class TokenViewSet(mixins.ListModelMixin, viewsets.GenericViewSet[Token]):
    """Bearer tokens of the signed-in user. The text of a token is shown once, when it is created."""

    kind = "Token"
    verbs = {"create": "mint", "destroy": "revoke"}
    permission_classes = [OfOneself]
    serializer_class = TokenSerializer
    ordering_fields = ["created_at", "name"]
    ordering = ["-created_at"]
    lookup_value_regex = "[0-9]+"

    @property
    def user(self) -> User:
        """Signed in: `OfOneself` lets no other pass."""
        return cast(User, self.request.user)

    def get_queryset(self) -> QuerySet[Token]:
        return Token.objects.filter(user_id=self.user.pk)

    @extend_schema(request=NewTokenSerializer, responses={201: MintedTokenSerializer})
    def create(self, request: Request) -> Response:
        row, text = access.mint(self.user, **new_token(request), now=timezone.now())
        row.token = text  # type: ignore[attr-defined]  # for the serializer
        return Response(MintedTokenSerializer(row).data, status=201)

    @extend_schema(request=None, responses={204: None}, parameters=[OpenApiParameter("id", int, OpenApiParameter.PATH)])
    def destroy(self, request: Request, pk: str) -> Response:
        access.revoke(self.user, min(int(pk), 2**62), now=timezone.now(), by=request.auth)
        return Response(status=204)


def me(user: Any) -> dict[str, Any]:
    held = [{"role": each.role, "namespace": each.namespace} for each in access.roles(user)]
    return {"username": user.get_username(), "roles": held, "can": access.can(user)}


_SIGN_IN_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Convoy</title>
<link rel="icon" href="data:,">
<main><h1>Convoy</h1><form method="post"><input type="hidden" name="csrfmiddlewaretoken" value="{token}">
<p>This link signs you in once.</p><button autofocus>Sign in</button></form></main></html>
"""


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_by_link(request: HttpRequest, text: str) -> HttpResponse:
    """Opening the link asks; the button signs in. So a preview uses nothing up, and no other site signs a browser in by it."""
    if request.method != "POST":
        return HttpResponse(_SIGN_IN_PAGE.format(token=escape(get_token(request))))
    try:
        user = access.use_signin_link(text, now=timezone.now())
    except InvalidInput as e:
        return HttpResponse(e.message, status=410, content_type="text/plain; charset=utf-8")
    login(request, user, backend=BACKEND)
    return HttpResponseRedirect("/")
