"""Signing in and out, and who one is: the console's session and one's own tokens."""

from typing import Any, cast

from django.conf import settings
from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.middleware.csrf import get_token
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, serializers, viewsets
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
    ProblemSerializer,
    SessionSerializer,
    TokenSerializer,
    new_token,
)
from fleet.api.sign_in.passwords import site_of
from fleet.api.sign_in.second_factor import EnrolmentSerializer, SignInSerializer, shown
from fleet.db import clock
from fleet.models import Token
from fleet.services.authorization import access, passkeys, second_factors
from fleet.services.authorization.second_factors import Verdict
from fleet.services.clusters import process_pods


class SecondFactorWantedSerializer(ProblemSerializer):
    second_factor = serializers.ChoiceField(["code", "enrolment"])
    enrolment = EnrolmentSerializer(allow_null=True)
    passkey = serializers.JSONField(
        allow_null=True, help_text="PublicKeyCredentialRequestOptions as JSON, where one of the user's would do as well"
    )


class SessionView(APIView):
    """A browser's session. GET hands out the CSRF cookie that POST and DELETE want back in ``X-CSRFToken``."""

    permission_classes = [AllowAny]

    @extend_schema(responses=SessionSerializer)
    def get(self, request: Request) -> Response:
        get_token(request._request)
        who = {"signed_in": request.user.is_authenticated, "username": request.user.get_username()}
        return Response({**who, "process_pods": bool(process_pods.namespaces()), "oidc": settings.CONVOY_OIDC.name})

    @extend_schema(request=SignInSerializer, responses={200: MeSerializer, 401: SecondFactorWantedSerializer})
    def post(self, request: Request) -> Response:
        """Right name and password, and 401 with `second_factor`: send them again with a `code` as well. Where it must be set up
        first, the answer has what an authenticator app needs, and the answer to the right code has recovery codes.
        """
        SessionAuthentication().enforce_csrf(request)
        serializer = SignInSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        plain = request._request
        user = authenticate(request=plain, **serializer.validated_data)
        if user is None:
            return self._refuse(plain)
        login(plain, user)
        codes = getattr(plain, "recovery_codes", None)
        return Response({**MeSerializer(me(user)).data, **({"recovery_codes": codes} if codes else {})})

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request) -> Response:
        SessionAuthentication().enforce_csrf(request)
        logout(request._request)
        return Response(status=204)

    def _refuse(self, plain: HttpRequest) -> Response:
        """Its own answer for a lock-out: the middleware of the limiter would send a page."""
        verdict = getattr(plain, "second_factor", None)
        if verdict in (Verdict.WANTED, Verdict.ENROLMENT_WANTED):
            return _wanted(plain, verdict)
        if wait := getattr(plain, "wait_s", 0):
            raise Throttled(wait=wait, detail="too many attempts to sign in as this user: try again in a moment")
        if getattr(plain, "axes_locked_out", False):
            plain.axes_locked_out = False  # type: ignore[attr-defined]  # axes reads and writes it
            raise Throttled(detail="too many failed attempts: wait a quarter of an hour, or ask for a sign-in link")
        if verdict is Verdict.LOCKED:
            raise Throttled(
                detail="too many wrong codes: wait a quarter of an hour, or have a fleet admin reset the second factor"
            )
        if verdict is Verdict.WRONG:
            raise AuthenticationFailed("the code is wrong, or was used: wait for the next one")
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
        return Token.objects.filter(user_id=self.user.pk).select_related("minted_by")

    @extend_schema(request=NewTokenSerializer, responses={201: MintedTokenSerializer})
    def create(self, request: Request) -> Response:
        row, text = access.mint(self.user, **new_token(request), now=clock.now())
        row.token = text  # type: ignore[attr-defined]  # for the serializer
        return Response(MintedTokenSerializer(row).data, status=201)

    @extend_schema(request=None, responses={204: None}, parameters=[OpenApiParameter("id", int, OpenApiParameter.PATH)])
    def destroy(self, request: Request, pk: str) -> Response:
        access.revoke(self.user, min(int(pk), 2**62), now=clock.now(), by=request.auth)
        return Response(status=204)


def _wanted(plain: HttpRequest, verdict: Verdict) -> Response:
    """The question for a code; with a new secret where the user has none, whose password was right."""
    detail = "a code of your authenticator app, or a recovery code, is needed as well"
    user = plain.second_factor_user  # type: ignore[attr-defined]
    passkey = passkeys.ask(user, site_of(plain), now=clock.now())
    more: dict[str, Any] = {"second_factor": "code", "enrolment": None, "passkey": passkey}
    if passkey is not None:
        detail = f"a passkey, or {detail}"
    if verdict is Verdict.ENROLMENT_WANTED:
        detail = "fleet admins need a second factor here: set up an authenticator app, and send a code of it as well"
        more = {"second_factor": "enrolment", "enrolment": shown(second_factors.begin(user)), "passkey": None}
    body = {"type": "about:blank", "title": "Not signed in", "status": 401, "detail": detail, **more}
    return Response(body, status=401, content_type="application/problem+json")


def me(user: Any) -> dict[str, Any]:
    held = [{"role": each.role, "namespace": each.namespace} for each in access.roles(user)]
    return {"username": user.get_username(), "roles": held, "can": access.can(user)}
