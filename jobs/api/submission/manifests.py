"""``apply`` and ``delete`` of whole files: many documents, any known kind, the roles checked for each before anything."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import SignedIn
from fleet.db import clock
from fleet.errors import Conflict, InvalidInput
from fleet.services.authorization import access
from jobs.api.submission.answers import AppliedListSerializer, DeletedListSerializer
from jobs.api.submission.bodies import PARSERS, refuse_forms
from jobs.models import Dependent, Job, Policy
from jobs.services.submission import manifests, submit
from jobs.services.submission.changes import actions
from quotas.models import QuotaTree
from quotas.services import trees

Document = Mapping[str, Any]
MANIFESTS = {
    "application/yaml": OpenApiTypes.STR,
    "text/yaml": OpenApiTypes.STR,
    "application/json": OpenApiTypes.OBJECT,
}


class ApplyView(APIView):
    """Creates or updates every manifest of the body, or none of them."""

    permission_classes = [SignedIn]
    parser_classes = PARSERS

    @extend_schema(request=MANIFESTS, responses=AppliedListSerializer)
    def post(self, request: Request) -> Response:
        documents = allowed_documents(request, "apply")
        applied = submit.apply(documents, by=request.user.get_username(), now=clock.now())
        return Response(AppliedListSerializer({"results": applied}).data)


class DeleteView(APIView):
    """Deletes what the manifests of the body name; what does not exist is reported, not refused."""

    permission_classes = [SignedIn]
    parser_classes = PARSERS

    @extend_schema(request=MANIFESTS, responses=DeletedListSerializer)
    def post(self, request: Request) -> Response:
        documents = allowed_documents(request, "delete")
        by, now = request.user.get_username(), clock.now()
        return Response({"results": [_delete(document, by, now) for document in documents]})


def allowed_documents(request: Request, verb: str) -> Sequence[dict[str, Any]]:
    """Read, and allowed to this user."""
    if not access.may_write(request.user):
        raise access.refusal(request.user, verb, "Job")
    refuse_forms(request._request)
    body: object = request.data
    documents = manifests.parse(body if isinstance(body, bytes) else b"")
    for document in documents:
        kind, namespace, _ = _key(document)
        access.require(request.user, verb, kind or "object", namespace)
    return documents


def _key(document: Document) -> tuple[str, str, str]:
    """Kind, namespace and name as the services understand them."""
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    kind = str(document.get("kind") or "")
    is_shared = kind in access.FLEET_WIDE or kind in Dependent.CLUSTER_WIDE
    namespace = "" if is_shared else str(metadata.get("namespace") or "default")
    return kind, namespace, str(metadata.get("name") or "")


def _delete(document: Document, by: str, now: datetime) -> dict[str, str]:
    kind, namespace, name = _key(document)
    key = {"kind": kind, "namespace": namespace, "name": name}
    if not kind or not name:
        raise InvalidInput("a manifest to delete needs a kind and a metadata.name")
    if job := Job.objects.filter(**key).first():
        return {**key, "action": _delete_job(job, by, now)}
    if policy := Policy.objects.filter(**key).first():
        actions.delete_policy(policy, by=by, now=now)
    elif dependent := Dependent.objects.filter(**key).first():
        actions.delete_dependent(dependent, by=by, now=now)
    elif kind == QuotaTree.kind and QuotaTree.objects.filter(namespace=namespace, name=name).exists():
        trees.delete(name, by=by, now=now)
    else:
        return {**key, "action": "absent"}
    return {**key, "action": "deleted"}


def _delete_job(job: Job, by: str, now: datetime) -> str:
    """What became of it, also where another deletion came first: that is no reason to leave the other objects."""
    try:
        return "deleted" if actions.delete(job, by=by, now=now) else "deleting"
    except Conflict:
        left = Job.objects.filter(pk=job.pk).first()
        if left is None:
            return "absent"
        if left.deleting_at is None:
            raise
        return "deleting"
