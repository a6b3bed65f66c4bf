"""What may be written in the manifests the fleet takes, over REST: editors complete by it, one place at a time.

It is the same for everybody who is signed in, and changes only with a release.
"""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import SignedIn
from fleet.kube.schema import fields
from jobs.services.submission import schema_completion


class KnownKindSerializer(serializers.Serializer[Any]):
    api_version = serializers.CharField()
    kind = serializers.CharField()
    plural = serializers.CharField(help_text="as in the paths of the Kubernetes-style API: pytorchjobs")
    short_names = serializers.ListField(child=serializers.CharField(), help_text="what may be typed instead")
    category = serializers.ChoiceField(
        [category.value for category in schema_completion.Category],
        help_text="job: the fleet places and runs it; policy; support: travels with jobs; quota",
    )
    description = serializers.CharField()


class KnownKindsSerializer(serializers.Serializer[Any]):
    results = KnownKindSerializer(many=True)


class FieldSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    type = serializers.ChoiceField(fields.TYPES)
    description = serializers.CharField()
    required = serializers.BooleanField()  # type: ignore[assignment]  # DRF moves declared fields away


class PlaceSerializer(serializers.Serializer[Any]):
    """Empty where the schema says nothing."""

    type = serializers.ChoiceField(fields.TYPES)
    description = serializers.CharField()
    fields = FieldSerializer(many=True)  # type: ignore[assignment]  # DRF moves declared fields away
    choices = serializers.ListField(child=serializers.CharField(), help_text="values that are meant; none: any")


class PlaceQuery(serializers.Serializer[Any]):
    api_version = serializers.CharField(max_length=253, help_text="like kubeflow.org/v1")
    kind = serializers.CharField(max_length=253)
    path = serializers.ListField(
        child=serializers.CharField(max_length=253, trim_whitespace=False),
        max_length=32,
        default=list,
        help_text=f"the keys from the top, one each; {fields.ENTRY} for the entries of a list",
    )


class KindsView(APIView):
    permission_classes = [SignedIn]

    @extend_schema(operation_id="schemas", responses=KnownKindsSerializer)
    def get(self, request: Request) -> Response:
        """The kinds whose manifests ``apply`` takes."""
        return Response(KnownKindsSerializer({"results": schema_completion.kinds()}).data)


class PlaceView(APIView):
    permission_classes = [SignedIn]

    @extend_schema(operation_id="schema_fields", parameters=[PlaceQuery], responses=PlaceSerializer)
    def get(self, request: Request) -> Response:
        """What may be written at one place of a manifest."""
        query = PlaceQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        return Response(PlaceSerializer(schema_completion.place(**query.validated_data)).data)
