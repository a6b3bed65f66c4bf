"""One's own second factor over REST: look at it, set it up, remove it. For browsers: a token changes none of it."""

from typing import Any, cast

import segno
from django.contrib.auth.models import User
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import SignedIn
from fleet.api.sign_in.passwords import site_of
from fleet.errors import Forbidden
from fleet.models import Passkey
from fleet.services.authorization import passkeys, second_factors
from fleet.services.authorization.second_factors import Enrolment, Proof

_TEXT = 16_384
"""Characters of one part of what a browser answers for a passkey; more than any authenticator makes."""


class PasskeySerializer(serializers.ModelSerializer[Passkey]):
    is_for_this_address = serializers.SerializerMethodField()

    class Meta:
        model = Passkey
        fields = ["id", "name", "site", "created_at", "last_used_at", "is_for_this_address"]

    def get_is_for_this_address(self, row: Passkey) -> bool:
        return bool(row.site == self.context["site"].host)


class SecondFactorSerializer(serializers.Serializer[Any]):
    is_set = serializers.BooleanField()
    is_required = serializers.BooleanField(help_text="of this user: CONVOY_MFA_ADMINS")
    recovery_codes_left = serializers.IntegerField()
    has_app = serializers.BooleanField(help_text="an authenticator app is set up")
    passkeys = PasskeySerializer(many=True)
    passkeys_fault = serializers.CharField(help_text="why this address takes no passkeys; empty: it does")


class SignedSerializer(serializers.Serializer[Any]):
    """What a passkey has signed: the fields of WebAuthn's AuthenticatorAssertionResponse, in base64url."""

    id = serializers.CharField(max_length=2048)
    client_data = serializers.CharField(max_length=_TEXT)
    authenticator_data = serializers.CharField(max_length=_TEXT)
    signature = serializers.CharField(max_length=_TEXT)


class ProofSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(max_length=40, default="", allow_blank=True)
    passkey = SignedSerializer(default=None, allow_null=True)


class NewPasskeySerializer(ProofSerializer):
    name = serializers.CharField(max_length=63)
    id = serializers.CharField(max_length=2048)
    client_data = serializers.CharField(max_length=_TEXT)
    attestation = serializers.CharField(max_length=_TEXT)


class AskedSerializer(serializers.Serializer[Any]):
    new = serializers.JSONField(help_text="PublicKeyCredentialCreationOptions, as JSON")
    known = serializers.JSONField(
        allow_null=True, help_text="PublicKeyCredentialRequestOptions; null: no passkey is here"
    )


class EnrolmentSerializer(serializers.Serializer[Any]):
    secret = serializers.CharField(help_text="base32, to type into an authenticator app")
    uri = serializers.CharField(help_text="otpauth://, the same for programs")
    image = serializers.CharField(help_text="the same as a QR code: an SVG as a data: URI")


class FactorCodeSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(max_length=40)


class ConfirmedSerializer(FactorCodeSerializer):
    passkey = SignedSerializer(default=None, allow_null=True, help_text="needed of a user who has passkeys")


class RecoveryCodesSerializer(serializers.Serializer[Any]):
    recovery_codes = serializers.ListField(child=serializers.CharField(), help_text="shown this once")


class SignInSerializer(serializers.Serializer[Any]):
    username = serializers.CharField(max_length=150)
    password = serializers.CharField(max_length=1024, trim_whitespace=False)
    code = serializers.CharField(
        max_length=40,
        default="",
        allow_blank=True,
        help_text="of the second factor, or a recovery code; empty: none yet",
    )
    passkey = SignedSerializer(default=None, allow_null=True, help_text="what a passkey has signed, instead of a code")


class SecondFactorView(APIView):
    permission_classes = [SignedIn]

    @extend_schema(responses=SecondFactorSerializer)
    def get(self, request: Request) -> Response:
        user, site = request.user, site_of(request._request)
        rows = Passkey.objects.filter(user_id=cast(User, user).pk).order_by("pk")
        about = {
            "is_set": second_factors.is_set(user),
            "is_required": second_factors.is_required(user),
            "recovery_codes_left": second_factors.recovery_codes_left(user),
            "has_app": second_factors.has_app(user),
            "passkeys": rows,
            "passkeys_fault": site.fault,
        }
        return Response(SecondFactorSerializer(about, context={"site": site}).data)

    @extend_schema(request=None, responses={201: EnrolmentSerializer})
    def post(self, request: Request) -> Response:
        """Begin: a secret for an authenticator app. It counts once a code of it has come back."""
        _require_browser(request)
        return Response(shown(second_factors.begin(request.user)), status=201)

    @extend_schema(request=ConfirmedSerializer, responses=RecoveryCodesSerializer)
    def put(self, request: Request) -> Response:
        """Set up what was begun, with a code of the app."""
        data = _given(request, ConfirmedSerializer)
        proof = Proof(passkey=data["passkey"], site=site_of(request._request))
        codes = second_factors.confirm(request.user, data["code"], now=timezone.now(), proof=proof)
        return Response({"recovery_codes": codes})


class SecondFactorCodeView(APIView):
    """What takes a code of the second factor that is set up."""

    permission_classes = [SignedIn]

    @extend_schema(request=FactorCodeSerializer, responses={204: None})
    def post(self, request: Request) -> Response:
        """Remove it; refused where it is required of the user."""
        second_factors.remove(request.user, _given(request, FactorCodeSerializer)["code"], now=timezone.now())
        return Response(status=204)


class PasskeyOptionsView(APIView):
    permission_classes = [SignedIn]

    @extend_schema(request=None, responses=AskedSerializer)
    def post(self, request: Request) -> Response:
        """What the browser is asked: to make a new passkey, and to sign with one that is set up, as a proof for changes."""
        _require_browser(request)
        site, now = site_of(request._request), timezone.now()
        new, known = passkeys.ask_new(request.user, site, now=now), passkeys.ask(request.user, site, now=now)
        return Response({"new": new, "known": known})


class PasskeysView(APIView):
    permission_classes = [SignedIn]

    @extend_schema(request=NewPasskeySerializer, responses={201: RecoveryCodesSerializer})
    def post(self, request: Request) -> Response:
        """Add the passkey that the browser has made. The first second factor comes with recovery codes."""
        data, site = _given(request, NewPasskeySerializer), site_of(request._request)
        codes = second_factors.add_passkey(
            request.user, site, data, data["name"], _proof(request, data), now=timezone.now()
        )
        return Response({"recovery_codes": codes}, status=201)


class PasskeyRemovalView(APIView):
    permission_classes = [SignedIn]

    @extend_schema(
        request=ProofSerializer,
        responses={204: None},
        parameters=[OpenApiParameter("id", int, OpenApiParameter.PATH)],
    )
    def post(self, request: Request, pk: str) -> Response:
        """Remove one's own; refused where it is the last factor and one is required."""
        proof = _proof(request, _given(request, ProofSerializer))
        second_factors.remove_passkey(request.user, min(int(pk), 2**62), proof, now=timezone.now())
        return Response(status=204)


def shown(enrolment: Enrolment) -> dict[str, str]:
    image = segno.make(enrolment.uri).svg_data_uri(scale=4, light="white")
    return {"secret": enrolment.secret, "uri": enrolment.uri, "image": image}


def _given(request: Request, serializer: type[serializers.Serializer[Any]]) -> dict[str, Any]:
    _require_browser(request)
    checked = serializer(data=request.data)
    checked.is_valid(raise_exception=True)
    return dict(checked.validated_data)


def _proof(request: Request, data: dict[str, Any]) -> Proof:
    return Proof(data["code"], data["passkey"], site_of(request._request))


def _require_browser(request: Request) -> None:
    if request.auth is not None:
        raise Forbidden("a token changes no second factor: sign in with a browser")
