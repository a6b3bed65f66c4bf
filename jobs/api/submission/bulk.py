"""One action on many jobs over REST, with a preview; refusals are listed job by job, beside what was done."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.clusters import visible
from fleet.api.http.permissions import SignedIn
from fleet.db import clock
from fleet.services.authorization import access
from jobs.models import Job
from jobs.services.submission import bulk
from jobs.services.submission.bulk import VERBS, BulkAction, Order

_CHOICES = [(each.value, each.name) for each in BulkAction]
_NEEDS = {BulkAction.PRIORITY: "priority", BulkAction.MOVE: "queue", BulkAction.SCALE: "replicas"}


class BulkSerializer(serializers.Serializer[Any]):
    action = serializers.ChoiceField(_CHOICES)
    ids = serializers.ListField(child=serializers.UUIDField(), min_length=1, max_length=bulk.MOST)
    preview = serializers.BooleanField(default=False, help_text="only report what would be done and what refused")
    priority = serializers.IntegerField(
        required=False, min_value=-(2**31) + 1, max_value=2**31 - 1, help_text="for priority: the new one"
    )
    queue = serializers.CharField(
        required=False, max_length=700, help_text="for move: the name of a queue, or the path of its leaf"
    )
    role = serializers.CharField(
        required=False, max_length=253, help_text="for scale: may be left out where only one role can be resized"
    )
    replicas = serializers.IntegerField(
        required=False, min_value=0, max_value=2**31 - 1, help_text="for scale: pods of that role"
    )

    def validate(self, body: dict[str, Any]) -> dict[str, Any]:
        needed = _NEEDS.get(BulkAction(body["action"]), "")
        if needed and needed not in body:
            raise serializers.ValidationError({needed: f"must be given for the action {body['action']}"})
        return body


class BulkResultSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(source="uid")
    namespace = serializers.CharField(allow_blank=True)
    name = serializers.CharField(allow_blank=True, help_text="empty: there is no such job any more")
    done = serializers.BooleanField(help_text="in a preview: that it would be")
    message = serializers.CharField(allow_blank=True, help_text="why not; empty when it is")
    gpus = serializers.IntegerField()
    before = serializers.CharField(
        allow_blank=True, help_text="the priority, queue, size or cluster that it leaves; empty for other actions"
    )
    after = serializers.CharField(
        allow_blank=True, help_text="what that becomes; for resubmit: the name of the new job"
    )


class BulkDoneSerializer(serializers.Serializer[Any]):
    action = serializers.ChoiceField(_CHOICES)
    preview = serializers.BooleanField()
    done = serializers.IntegerField()
    refused = serializers.IntegerField()
    results = BulkResultSerializer(many=True)


class BulkView(APIView):
    """Does one thing to many jobs; always 200, with the answer for each of them."""

    permission_classes = [SignedIn]

    @extend_schema(request=BulkSerializer, responses=BulkDoneSerializer)
    def post(self, request: Request) -> Response:
        """Suspends, resumes, deletes, reprioritizes, moves, resizes, preempts or resubmits; ``preview`` changes nothing."""
        if not any(access.may_somewhere(request.user, verb, "Job") for verb in VERBS.values()):
            raise access.refusal(request.user, "steer", "Job")
        serializer = BulkSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        body = serializer.validated_data
        action, preview, ids = BulkAction(body.pop("action")), body.pop("preview"), body.pop("ids")
        verb = VERBS[action]
        if not access.may_somewhere(request.user, verb, "Job"):
            raise access.refusal(request.user, verb, "Job")
        rows = visible(Job.objects.filter(uid__in=ids), request.user).select_related("cluster").defer("cluster__access")
        results = bulk.run(
            Order(action, **body),
            ids,
            rows,
            lambda job: _refusal(request.user, verb, job),
            by=request.user.get_username(),
            now=clock.now(),
            preview=preview,
        )
        done = sum(each.done for each in results)
        answer = {"action": action, "preview": preview, "done": done, "refused": len(results) - done}
        return Response(BulkDoneSerializer({**answer, "results": results}).data)


def _refusal(user: Any, verb: str, job: Job) -> str:
    if access.may(user, verb, "Job", job.namespace):
        return ""
    return access.refusal(user, verb, "Job", job.namespace).message
