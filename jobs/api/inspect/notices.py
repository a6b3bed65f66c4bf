"""The notices that a job's pods were given in its members, over REST."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.clusters import visible
from fleet.api.http.permissions import ByRole, Guarded
from fleet.errors import NotFound
from jobs.models import Job, Notice

SHOWN = 500


class NoticeSerializer(serializers.ModelSerializer[Notice]):
    attempt = serializers.IntegerField()
    cluster = serializers.CharField(source="cluster_name")
    scope = serializers.CharField(
        help_text="Pods: only those of the node; Job: all pods, because too few would be left"
    )
    heard_at = serializers.DateTimeField(allow_null=True, help_text="when the process answered; null: it has not")
    left_at = serializers.DateTimeField(allow_null=True, help_text="when the process had ended")
    saved_step = serializers.IntegerField(allow_null=True, help_text="the step it saved, where its runtime reports one")
    stopped_at = serializers.DateTimeField(allow_null=True, help_text="when the whole job was stopped")

    class Meta:
        model = Notice
        fields = (
            "attempt", "cluster", "pod", "node", "cause", "scope", "at", "deadline", "heard_at", "left_at", "saved_step",
            "stopped_at",
        )  # fmt: skip


class NoticesView(Guarded, APIView):
    kind = "Job"
    permission_classes = [ByRole]

    @extend_schema(operation_id="job_notices", responses=NoticeSerializer(many=True), summary="Notices to a job's pods")
    def get(self, request: Request, id: UUID) -> Response:
        """Reclaim notices to the job's pods, the latest 500 in the order of time."""
        job = visible(Job.objects.select_related("cluster"), request.user).filter(uid=id).first()
        if job is None:
            raise NotFound("there is no such job")
        self.check_object_permissions(request, job)
        latest: list[Any] = list(job.notices.order_by("-at", "-pk")[:SHOWN])
        return Response(NoticeSerializer(sorted(latest, key=lambda row: (row.at, row.pod)), many=True).data)
