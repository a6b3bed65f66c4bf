"""The quota tree over REST: parse, authorise, call one service, render."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import generics
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import ByRole, Guarded
from fleet.db import clock
from fleet.errors import NotFound, invalid
from quotas import queries
from quotas.api import bodies
from quotas.api.serializers import (
    ChangesSerializer,
    ManifestSerializer,
    PreviewRequestSerializer,
    PreviewSerializer,
    QuotaTreeSerializer,
    RevertSerializer,
    RevisionDetailSerializer,
    RevisionSerializer,
    SavedSerializer,
)
from quotas.models import QuotaRevision, QuotaTree
from quotas.services import documents, history, previews, trees, views

_PK = OpenApiParameter("id", OpenApiTypes.INT, OpenApiParameter.PATH, description="the generation")


class _OfTree(Guarded):
    kind = QuotaTree.kind
    permission_classes: Sequence[Any] = [ByRole]
    parser_classes: Sequence[type[BaseParser]] = bodies.PARSERS


class TreeView(_OfTree, APIView):
    """The one quota tree, with the use of now on every node."""

    @extend_schema(responses=QuotaTreeSerializer)
    def get(self, request: Request) -> Response:
        return Response(QuotaTreeSerializer(views.tree_view_of(_row(), request.user, clock.now())).data)

    @extend_schema(
        request={"application/json": ManifestSerializer, "application/yaml": OpenApiTypes.STR},
        responses=SavedSerializer,
    )
    def put(self, request: Request) -> Response:
        """Creates or replaces it; import of a file."""
        body = _valid(ManifestSerializer, request)
        saved = trees.save(bodies.manifest(body), bodies.saving(request, body, clock.now()))
        return Response(SavedSerializer(saved).data)

    @extend_schema(request=ChangesSerializer, responses=SavedSerializer)
    def patch(self, request: Request) -> Response:
        """Changes only what is named; all of the changes, or none."""
        body = _valid(ChangesSerializer, request)
        saved = trees.edit(body["changes"], bodies.saving(request, body, clock.now()))
        return Response(SavedSerializer(saved).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request) -> Response:
        trees.delete(_row().name, by=request.user.get_username(), now=clock.now(), source="rest")
        return Response(status=204)


class PreviewView(_OfTree, APIView):
    """What a change would do; nothing is saved. An invalid tree is an answer here, not a refusal."""

    @extend_schema(request=PreviewRequestSerializer, responses=PreviewSerializer)
    def post(self, request: Request) -> Response:
        body, by = _valid(PreviewRequestSerializer, request), request.user.get_username()
        now = clock.now() if body["simulate"] else None
        if "changes" in body:
            preview = previews.of_changes(body["changes"], by=by, now=now)
        else:
            preview = previews.of_manifest(bodies.manifest(body), by=by, now=now)
        return Response(PreviewSerializer(preview).data)


class ManifestView(_OfTree, APIView):
    """Export: the file that ``PUT`` and ``kubectl apply`` take."""

    @extend_schema(responses={(200, "application/yaml"): OpenApiResponse(OpenApiTypes.STR)})
    def get(self, request: Request) -> HttpResponse:
        row = _row()
        answer = HttpResponse(documents.write(row.manifest), content_type="application/yaml")
        answer["Content-Disposition"] = f'attachment; filename="{row.name}.yaml"'
        return answer


class HistoryView(_OfTree, generics.ListAPIView[QuotaRevision]):
    """Every generation, newest first."""

    queryset = queries.revisions().defer("manifest")
    serializer_class = RevisionSerializer
    filter_backends = []


class GenerationView(_OfTree, APIView):
    @extend_schema(responses=RevisionDetailSerializer, parameters=[_PK])
    def get(self, request: Request, pk: int) -> Response:
        """One generation, and what it changed."""
        row = queries.revisions().filter(generation=int(pk)).first()
        if row is None:
            raise NotFound(f"There is no generation {pk} of the quota tree.")
        row.differences = history.differences(row)  # type: ignore[attr-defined]  # for the serializer
        return Response(RevisionDetailSerializer(row).data)


class RevertView(_OfTree, APIView):
    @extend_schema(request=RevertSerializer, responses=SavedSerializer)
    def post(self, request: Request) -> Response:
        """Saves an earlier generation once more, as a new one."""
        body = _valid(RevertSerializer, request)
        saved = trees.revert(body["to"], bodies.saving(request, body, clock.now()))
        return Response(SavedSerializer(saved).data)


def _row() -> QuotaTree:
    row = queries.tree_row()
    if row is None:
        raise NotFound("There is no quota tree: nothing is limited by quota.")
    return row


def _valid(serializer: Any, request: Request) -> Any:
    if not isinstance(request.data, dict):
        raise invalid("body", "must be an object")
    read = serializer(data=request.data)
    read.is_valid(raise_exception=True)
    return read.validated_data
