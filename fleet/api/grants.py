"""Who may what, over REST: users with their roles, grants, and the tokens of others. For fleet admins."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.http.permissions import ByRole, Guarded
from fleet.api.serializers import MintedTokenSerializer, NewTokenSerializer, TokenSerializer, new_token
from fleet.db import clock
from fleet.models import Grant, Token
from fleet.services.authorization import grants, second_factors, users

_ID = OpenApiParameter("id", int, OpenApiParameter.PATH)
_LARGEST_ID = 2**62


class HeldRoleSerializer(serializers.ModelSerializer[Grant]):
    """A role a user has; the id is what takes it back."""

    class Meta:
        model = Grant
        fields = ("id", "role", "namespace")


class UserSerializer(serializers.Serializer[Any]):
    username = serializers.CharField()
    active = serializers.BooleanField(source="is_active")
    superuser = serializers.BooleanField(source="is_superuser", help_text="a fleet admin without a grant")
    roles = HeldRoleSerializer(many=True, source="grants")
    last_login = serializers.DateTimeField(allow_null=True)


class NewUserSerializer(serializers.Serializer[Any]):
    username = serializers.CharField(max_length=150)
    password = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=128, trim_whitespace=False, write_only=True,
        help_text="empty: the user signs in by a link, or uses tokens",
    )  # fmt: skip


class PasswordSerializer(serializers.Serializer[Any]):
    password = serializers.CharField(max_length=128, trim_whitespace=False, write_only=True)


class RevokedTokensSerializer(serializers.Serializer[Any]):
    revoked = serializers.IntegerField(help_text="tokens that were live")


class GrantSerializer(serializers.ModelSerializer[Grant]):
    user = serializers.CharField(source="user.username", max_length=150)
    role = serializers.CharField(max_length=16, help_text="fleet-admin, quota-admin, editor or viewer")
    namespace = serializers.CharField(max_length=63, default="", allow_blank=True, help_text="empty: all namespaces")

    class Meta:
        model = Grant
        fields = ("id", "user", "role", "namespace")
        validators: list[Any] = []


class _ForAdmins(Guarded):
    kind = "Grant"
    verbs = {"create": "grant", "destroy": "revoke"}
    permission_classes: Sequence[Any] = [ByRole]


class UserViewSet(_ForAdmins, mixins.ListModelMixin, viewsets.GenericViewSet[Any]):
    """Users with their roles. They are disabled, never deleted."""

    verbs = {
        "create": "grant",
        "disable": "revoke",
        "enable": "grant",
        "password": "grant",
        "reset_second_factor": "grant",
        "revoke_tokens": "revoke",
    }
    serializer_class = UserSerializer
    search_fields = ["username"]
    ordering_fields = ["username", "last_login"]
    ordering = ["username"]
    filterset_fields: list[str] = []
    lookup_field = "username"
    lookup_value_regex = "[^/]+"

    def get_queryset(self) -> QuerySet[Any]:
        return grants.users()

    @extend_schema(request=NewUserSerializer, responses={201: UserSerializer})
    def create(self, request: Request) -> Response:
        serializer = NewUserSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        user = users.create(serializer.validated_data["username"], serializer.validated_data["password"])
        return Response(UserSerializer(user).data, status=201)

    @extend_schema(request=None, responses=UserSerializer)
    @action(detail=True, methods=["post"])
    def disable(self, request: Request, username: str) -> Response:
        """Ends every way in; refused for the last fleet admin."""
        return Response(UserSerializer(users.disable(username)).data)

    @extend_schema(request=None, responses=UserSerializer)
    @action(detail=True, methods=["post"])
    def enable(self, request: Request, username: str) -> Response:
        return Response(UserSerializer(users.enable(username)).data)

    @extend_schema(request=PasswordSerializer, responses={204: None})
    @action(detail=True, methods=["post"])
    def password(self, request: Request, username: str) -> Response:
        """A new password; ends the user's sessions, and revokes what `revoke-tokens` does."""
        serializer = PasswordSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        users.set_password(username, serializer.validated_data["password"], now=clock.now())
        return Response(status=204)

    @extend_schema(request=None, responses={204: None})
    @action(detail=True, methods=["post"], url_path="reset-second-factor")
    def reset_second_factor(self, request: Request, username: str) -> Response:
        """For a user who lost their authenticator app and all recovery codes: they sign in with the password alone."""
        second_factors.reset(username)
        return Response(status=204)

    @extend_schema(request=None, responses=RevokedTokensSerializer)
    @action(detail=True, methods=["post"], url_path="revoke-tokens")
    def revoke_tokens(self, request: Request, username: str) -> Response:
        """Revokes the user's tokens, those they minted for others, and all that these minted; also sign-in links. Ends the
        sessions of a user who has no password here; those of the others end with a new password.
        """
        return Response({"revoked": grants.revoke_all(username, now=clock.now())})


class GrantViewSet(_ForAdmins, mixins.ListModelMixin, viewsets.GenericViewSet[Grant]):
    """A role of one user, in one namespace or in all."""

    queryset = Grant.objects.select_related("user")
    serializer_class = GrantSerializer
    filterset_fields = {"user__username": ["exact"], "role": ["exact"], "namespace": ["exact"]}
    search_fields = ["user__username"]
    ordering_fields = ["user__username", "role", "namespace"]
    ordering = ["user__username", "role", "namespace"]
    lookup_value_regex = "[0-9]+"

    @extend_schema(request=GrantSerializer, responses={201: GrantSerializer})
    def create(self, request: Request) -> Response:
        serializer = GrantSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        asked = serializer.validated_data
        row = grants.grant(asked["user"]["username"], asked["role"], asked["namespace"])
        return Response(GrantSerializer(row).data, status=201)

    @extend_schema(request=None, responses={204: None}, parameters=[_ID])
    def destroy(self, request: Request, pk: str) -> Response:
        grants.take_back(min(int(pk), _LARGEST_ID))
        return Response(status=204)


class UserTokenViewSet(_ForAdmins, mixins.ListModelMixin, viewsets.GenericViewSet[Token]):
    """Bearer tokens of a user. The text of a token is shown once, when it is created."""

    serializer_class = TokenSerializer
    ordering_fields = ["created_at", "name"]
    ordering = ["-created_at"]
    filterset_fields: list[str] = []
    lookup_value_regex = "[0-9]+"
    queryset = Token.objects.none()

    def get_queryset(self) -> QuerySet[Token]:
        return Token.objects.filter(user__username=self.kwargs.get("username", "")).select_related("minted_by")

    @extend_schema(request=NewTokenSerializer, responses={201: MintedTokenSerializer})
    def create(self, request: Request, username: str) -> Response:
        row, text = grants.mint(username, **new_token(request), now=clock.now())
        row.token = text  # type: ignore[attr-defined]  # for the serializer
        return Response(MintedTokenSerializer(row).data, status=201)

    @extend_schema(request=None, responses={204: None}, parameters=[_ID])
    def destroy(self, request: Request, username: str, pk: str) -> Response:
        grants.revoke(username, min(int(pk), _LARGEST_ID), now=clock.now())
        return Response(status=204)
