"""The spot pools of a cluster and what became of the pods on nodes that were reclaimed, over REST."""

from collections.abc import Callable
from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import ByRole, Guarded
from fleet.db import clock
from fleet.models import Cluster
from fleet.services.authorization import access
from jobs.runtime.reclaims import Outcome, PodOfReclaim, Reclaim
from jobs.services.series import reclaims

SHOWN = 100


class SpotPoolSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="by a label of its nodes; spot: no label names it")
    nodes = serializers.IntegerField(help_text="that are there now")
    ready = serializers.IntegerField()
    gpus = serializers.IntegerField()


class ReclaimedPodSerializer(serializers.Serializer[Any]):
    """Names are empty for a job of a namespace that the caller may not read."""

    job = serializers.CharField(help_text="the job's id")
    namespace = serializers.CharField()
    name = serializers.CharField(help_text="of the job")
    pod = serializers.CharField()
    attempt = serializers.IntegerField()
    gpus = serializers.IntegerField()
    outcome = serializers.ChoiceField(
        [outcome.value for outcome in Outcome],
        help_text="Saved: it reported its checkpoint, or heard its notice and left in time; Leaving: it has not left yet",
    )
    saved_step = serializers.IntegerField(allow_null=True)


class ReclaimOfNodeSerializer(serializers.Serializer[Any]):
    node = serializers.CharField()
    pool = serializers.CharField(help_text="empty: the node is gone, or of no spot pool")
    cause = serializers.CharField()
    at = serializers.DateTimeField(help_text="when the first of its pods was given notice")
    deadline = serializers.DateTimeField()
    notice_s = serializers.FloatField(help_text="seconds of notice")
    saved = serializers.IntegerField(help_text="pods")
    lost = serializers.IntegerField(help_text="pods that are not known to have saved")
    lost_gpu_minutes = serializers.FloatField(
        help_text="of those pods, since the last save of their job by its notices, or since its attempt began: at most"
    )
    pods = ReclaimedPodSerializer(many=True)


class SpotSerializer(serializers.Serializer[Any]):
    cluster = serializers.CharField()
    pools = SpotPoolSerializer(many=True)
    reclaims = ReclaimOfNodeSerializer(many=True, help_text="the latest 100 of the last 30 days, the latest first")


class SpotView(Guarded, APIView):
    kind = "Cluster"
    permission_classes = [ByRole]

    @extend_schema(operation_id="cluster_spot", responses=SpotSerializer, summary="Spot pools and reclaimed nodes")
    def get(self, request: Request, name: str) -> Response:
        """Pools of nodes that their provider may take back, and the reclaims that pods of the fleet's jobs met.

        Made of the notices that the supervisor of elastic jobs gave: a reclaim of an empty node is not in it.
        """
        cluster = get_object_or_404(Cluster.objects.defer("access"), name=name)
        spot, sees = reclaims.of_cluster(cluster, clock.now()), access.sees(request.user)
        rows = [_row(reclaim, spot, sees) for reclaim in spot.reclaims[:SHOWN]]
        return Response(SpotSerializer({"cluster": cluster.name, "pools": spot.pools, "reclaims": rows}).data)


def _row(reclaim: Reclaim, spot: reclaims.Spot, sees: Callable[[str], bool]) -> dict[str, Any]:
    return {
        "node": reclaim.node,
        "pool": spot.pool_of.get(reclaim.node, ""),
        "cause": reclaim.cause,
        "at": reclaim.at,
        "deadline": reclaim.deadline,
        "notice_s": (reclaim.deadline - reclaim.at).total_seconds(),
        "saved": reclaim.count(Outcome.SAVED),
        "lost": reclaim.count(Outcome.LOST),
        "lost_gpu_minutes": round(reclaim.lost_gpu_minutes, 1),
        "pods": [_pod(pod, spot, sees) for pod in reclaim.pods],
    }


def _pod(pod: PodOfReclaim, spot: reclaims.Spot, sees: Callable[[str], bool]) -> dict[str, Any]:
    notice, job = pod.notice, spot.jobs[pod.notice.job]
    shown = {"attempt": notice.attempt, "gpus": notice.gpus, "outcome": pod.outcome.value}
    if not sees(job.namespace):
        return {**shown, "job": "", "namespace": "", "name": "", "pod": "", "saved_step": None}
    names = {"job": str(job.uid), "namespace": job.namespace, "name": job.name, "pod": notice.pod}
    return {**shown, **names, "saved_step": notice.saved_step}
