"""The product's own health for whoever is signed in: as the probe says it, and always answered with 200."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api import probes
from fleet.api.permissions import SignedIn


class SystemCheckSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="database, migrations, broker, worker, beat or watcher")
    ok = serializers.BooleanField()
    detail = serializers.CharField(default="")
    age_s = serializers.FloatField(default=None, allow_null=True, help_text="since it was last heard of")


class SystemSerializer(serializers.Serializer[Any]):
    ok = serializers.BooleanField()
    checks = SystemCheckSerializer(many=True)


class SystemView(APIView):
    permission_classes = [SignedIn]

    @extend_schema(responses=SystemSerializer)
    def get(self, request: Request) -> Response:
        ok, checks = probes.look()
        return Response(SystemSerializer({"ok": ok, "checks": [{"name": k, **v} for k, v in checks.items()]}).data)
