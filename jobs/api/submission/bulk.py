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
from jobs.core.failover.lifecycle import Action
from jobs.models import Job
from jobs.services.submission.changes import bulk


class BulkSerializer(serializers.Serializer[Any]):
    action = serializers.ChoiceField([(each.value, each.name) for each in Action])
    ids = serializers.ListField(child=serializers.UUIDField(), min_length=1, max_length=bulk.MOST)
    preview = serializers.BooleanField(default=False, help_text="only report what would be done and what refused")


class BulkResultSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(source="uid")
    namespace = serializers.CharField(allow_blank=True)
    name = serializers.CharField(allow_blank=True, help_text="empty: there is no such job any more")
    done = serializers.BooleanField(help_text="in a preview: that it would be")
    message = serializers.CharField(allow_blank=True, help_text="why not; empty when it is")
    gpus = serializers.IntegerField()


class BulkDoneSerializer(serializers.Serializer[Any]):
    action = serializers.ChoiceField([(each.value, each.name) for each in Action])
    preview = serializers.BooleanField()
    done = serializers.IntegerField()
    refused = serializers.IntegerField()
    results = BulkResultSerializer(many=True)


class BulkView(APIView):
    """Suspends, resumes or deletes many jobs; always 200, with the answer for each of them."""

    permission_classes = [SignedIn]

    @extend_schema(request=BulkSerializer, responses=BulkDoneSerializer)
    def post(self, request: Request) -> Response:
        if not any(access.may_somewhere(request.user, each.value, "Job") for each in Action):
            raise access.refusal(request.user, "steer", "Job")
        serializer = BulkSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        body = serializer.validated_data
        action = Action(body["action"])
        if not access.may_somewhere(request.user, action.value, "Job"):
            raise access.refusal(request.user, action.value, "Job")
        rows = visible(Job.objects.filter(uid__in=body["ids"]), request.user)
        results = bulk.run(
            action,
            body["ids"],
            rows,
            lambda job: _refusal(request.user, action, job),
            by=request.user.get_username(),
            now=clock.now(),
            preview=body["preview"],
        )
        done = sum(each.done for each in results)
        answer = {"action": action, "preview": body["preview"], "done": done, "refused": len(results) - done}
        return Response(BulkDoneSerializer({**answer, "results": results}).data)


def _refusal(user: Any, action: Action, job: Job) -> str:
    if access.may(user, action.value, "Job", job.namespace):
        return ""
    return access.refusal(user, action.value, "Job", job.namespace).message
