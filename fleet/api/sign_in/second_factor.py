"""One's own second factor over REST: look at it, set it up, remove it. For browsers: a token changes none of it."""

from typing import Any

import segno
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import SignedIn
from fleet.errors import Forbidden
from fleet.services.authorization import second_factors
from fleet.services.authorization.second_factors import Enrolment


class SecondFactorSerializer(serializers.Serializer[Any]):
    is_set = serializers.BooleanField()
    is_required = serializers.BooleanField(help_text="of this user: CONVOY_MFA_ADMINS")
    recovery_codes_left = serializers.IntegerField()


class EnrolmentSerializer(serializers.Serializer[Any]):
    secret = serializers.CharField(help_text="base32, to type into an authenticator app")
    uri = serializers.CharField(help_text="otpauth://, the same for programs")
    image = serializers.CharField(help_text="the same as a QR code: an SVG as a data: URI")


class FactorCodeSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(max_length=40)


class RecoveryCodesSerializer(serializers.Serializer[Any]):
    recovery_codes = serializers.ListField(child=serializers.CharField(), help_text="shown this once")


class SecondFactorView(APIView):
    permission_classes = [SignedIn]

    @extend_schema(responses=SecondFactorSerializer)
    def get(self, request: Request) -> Response:
        user = request.user
        left = second_factors.recovery_codes_left(user)
        shown = {"is_set": second_factors.is_set(user), "is_required": second_factors.is_required(user)}
        return Response({**shown, "recovery_codes_left": left})

    @extend_schema(request=None, responses={201: EnrolmentSerializer})
    def post(self, request: Request) -> Response:
        """Begin: a secret for an authenticator app. It counts once a code of it has come back."""
        _require_browser(request)
        return Response(shown(second_factors.begin(request.user)), status=201)

    @extend_schema(request=FactorCodeSerializer, responses=RecoveryCodesSerializer)
    def put(self, request: Request) -> Response:
        """Set up what was begun, with a code of the app."""
        codes = second_factors.confirm(request.user, _code(request), now=timezone.now())
        return Response({"recovery_codes": codes})


class SecondFactorCodeView(APIView):
    """What takes a code of the second factor that is set up."""

    permission_classes = [SignedIn]

    @extend_schema(request=FactorCodeSerializer, responses={204: None})
    def post(self, request: Request) -> Response:
        """Remove it; refused where it is required of the user."""
        second_factors.remove(request.user, _code(request), now=timezone.now())
        return Response(status=204)


def shown(enrolment: Enrolment) -> dict[str, str]:
    image = segno.make(enrolment.uri).svg_data_uri(scale=4, light="white")
    return {"secret": enrolment.secret, "uri": enrolment.uri, "image": image}


def _code(request: Request) -> str:
    _require_browser(request)
    given = FactorCodeSerializer(data=request.data)
    given.is_valid(raise_exception=True)
    return str(given.validated_data["code"])


def _require_browser(request: Request) -> None:
    if request.auth is not None:
        raise Forbidden("a token changes no second factor: sign in with a browser")
