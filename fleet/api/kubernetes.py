"""Where the Kubernetes-style door is and whom to trust there: what a client needs to write a kubeconfig for itself."""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import SignedIn
from fleet.services.operations import kube_authority


class KubernetesSerializer(serializers.Serializer[Any]):
    server = serializers.CharField(help_text="such as https://127.0.0.1:8443")
    certificate_authority = serializers.CharField(help_text="PEM; empty: one that every system trusts")


class KubernetesView(APIView):
    permission_classes = [SignedIn]

    @extend_schema(responses=KubernetesSerializer)
    def get(self, request: Request) -> Response:
        """Under the name the caller came by, unless CONVOY_KUBE_URL says another."""
        host = request.get_host()
        name = host if host.endswith("]") or ":" not in host else host.rpartition(":")[0]
        server = settings.CONVOY_KUBE_URL or f"https://{name}:{settings.CONVOY_KUBE_PORT}"
        return Response({"server": server, "certificate_authority": kube_authority.read()})
