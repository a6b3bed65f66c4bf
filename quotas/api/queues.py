"""Queues over REST: listed, looked at, held, drained, stopped, opened."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.http.permissions import ByRole, Guarded
from fleet.db import clock
from quotas import queries
from quotas.api.serializers import QueueSerializer, QueueStateSerializer
from quotas.models import Queue
from quotas.services import queues, scopes

State = Queue.State
_CHANGE = extend_schema(request=QueueStateSerializer, responses=QueueSerializer)


class QueueViewSet(Guarded, mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Queue]):
    kind = Queue.kind
    verbs = {each: each for each in ("hold", "drain", "stop", "open")}
    permission_classes = [ByRole]
    serializer_class = QueueSerializer
    lookup_field = "name"
    lookup_value_regex = "[a-z0-9-]+"
    filterset_fields = ["state", "leaf", "path"]
    search_fields = ["name", "path"]
    ordering_fields = ["path", "name", "state", "created_at"]
    ordering = ["path"]

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "scope": scopes.scope_of(self.request.user)}

    def get_queryset(self) -> QuerySet[Queue]:
        return queries.queues()

    @_CHANGE
    @action(detail=True, methods=["post"])
    def hold(self, request: Request, name: str) -> Response:
        """Admits nothing; what runs goes on."""
        return self._to(request, State.HELD)

    @_CHANGE
    @action(detail=True, methods=["post"])
    def drain(self, request: Request, name: str) -> Response:
        """Admits nothing and takes no more jobs; what runs goes on."""
        return self._to(request, State.DRAINING)

    @_CHANGE
    @action(detail=True, methods=["post"])
    def stop(self, request: Request, name: str) -> Response:
        """Admits nothing, and preempts what runs."""
        return self._to(request, State.STOPPED)

    @_CHANGE
    @action(detail=True, methods=["post"])
    def open(self, request: Request, name: str) -> Response:
        return self._to(request, State.OPEN)

    def _to(self, request: Request, state: Queue.State) -> Response:
        queue = self.get_object()
        serializer = QueueStateSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        by, comment = request.user.get_username(), serializer.validated_data["comment"]
        queues.set_state(queue, state, by=by, now=clock.now(), comment=comment)
        return Response(self.get_serializer(queue).data)
