"""Signing in at the command line through a browser: the browser makes a code, the command line takes a token for it."""

from datetime import timedelta
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import SignedIn
from fleet.api.serializers import MintedTokenSerializer
from fleet.db import clock
from fleet.errors import Forbidden
from fleet.services.auditing import audit, refused_sign_ins
from fleet.services.auditing.refused_sign_ins import Refusal
from fleet.services.authorization import cli_logins


class NewCodeSerializer(serializers.Serializer[Any]):
    challenge = serializers.CharField(max_length=43, help_text="PKCE's: the SHA-256 digest of the verifier, base64url")
    name = serializers.CharField(max_length=63, help_text="of the token")
    expires_in_s = serializers.IntegerField(
        min_value=1, max_value=10**10, default=12 * 3600, help_text="the token's life"
    )


class LoginCodeSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    username = serializers.CharField()


class TakenCodeSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(max_length=100)
    verifier = serializers.CharField(max_length=128)


class LoginCodeView(APIView):
    """A code for the command line that began it: of the user who is signed in in this browser."""

    permission_classes = [SignedIn]

    @extend_schema(request=NewCodeSerializer, responses={201: LoginCodeSerializer})
    def post(self, request: Request) -> Response:
        if request.auth is not None:
            raise Forbidden("a token makes no code: sign in with a browser, or mint a token with this one")
        serializer = NewCodeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        about = dict(serializer.validated_data)
        life, user = timedelta(seconds=about.pop("expires_in_s")), request.user
        code = cli_logins.make_code(user, **about, life=life, now=clock.now())  # type: ignore[arg-type]  # signed in
        return Response({"code": code, "username": user.get_username()}, status=201)


class LoginTokenView(APIView):
    """The token for a code, once, for the program that has the verifier."""

    permission_classes = [AllowAny]
    authentication_classes = []

    @extend_schema(request=TakenCodeSerializer, responses={201: MintedTokenSerializer}, auth=[])
    def post(self, request: Request) -> Response:
        serializer = TakenCodeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        now, address = clock.now(), str(request.META.get("REMOTE_ADDR", ""))
        try:
            row = cli_logins.take(**serializer.validated_data, now=now)
        except Forbidden:
            refused_sign_ins.count(address, Refusal.CODES)
            raise
        asking = {"door": "rest", "address": address, "request": f"POST {request.path}"}
        with audit.asking(row.user.get_username, **asking):
            token, text = cli_logins.mint(row, now=now)
        token.token = text  # type: ignore[attr-defined]  # for the serializer
        return Response(MintedTokenSerializer(token).data, status=201)
