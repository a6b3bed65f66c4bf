"""Rotation of the keys of secrets at rest over REST, a batch a request: a fleet admin's work."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import ByRole, Guarded
from fleet.services.operations import key_rotation


class RotationSerializer(serializers.Serializer[Any]):
    begin = serializers.CharField(
        required=False, allow_blank=True, default="", help_text="the `next` of the batch before"
    )


class RotatedSerializer(serializers.Serializer[Any]):
    looked_at = serializers.IntegerField()
    encrypted = serializers.IntegerField(help_text="rows that were of another key than the first")
    next = serializers.CharField(help_text="empty: every secret is of the first key")


class RotationView(Guarded, APIView):
    """Encrypts a batch of secrets with the first key; ask again with ``next`` until it is empty. May be started anew."""

    kind = "EncryptionKeys"
    permission_classes = [ByRole]

    @extend_schema(request=RotationSerializer, responses=RotatedSerializer)
    def post(self, request: Request) -> Response:
        body = RotationSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        return Response(RotatedSerializer(asdict(key_rotation.rotate_batch(body.validated_data["begin"]))).data)
