"""Where a job's ranks are and how fast that makes it, over REST; and how fast a model is anywhere."""

from math import isfinite
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api.http.permissions import ByRole, Guarded
from fleet.errors import FieldFault, InvalidInput
from jobs.core.topology import network
from jobs.core.topology import speed as topology_speed
from jobs.models import Job
from jobs.services.inspect import speeds


class SpeedSerializer(serializers.Serializer[Any]):
    """Predicted from the size of the gradients: samples a second, or steps a second where the batch size is not declared."""

    over = serializers.CharField(help_text="what the ring goes over at its slowest")
    gbs = serializers.FloatField(help_text="its bus bandwidth, GB/s")
    step_s = serializers.FloatField()
    per_gpu = serializers.FloatField()
    total = serializers.FloatField()
    speedup = serializers.FloatField(help_text="over the slowest place, nodes apart")


class RunSerializer(serializers.Serializer[Any]):
    node = serializers.CharField()
    pods = serializers.IntegerField(help_text="ranks in a row")


class PlacementSerializer(serializers.Serializer[Any]):
    nodes = serializers.DictField(child=RunSerializer(many=True), help_text="per role, in the order of ranks")
    shared = serializers.DictField(child=serializers.CharField(), help_text="zone, psw, asw that all of its ring share")
    switches = serializers.IntegerField(help_text="access switches its ring goes over; 0: not known")
    crossings = serializers.IntegerField(help_text="steps of the ring from one switch to another")
    met = serializers.BooleanField(help_text="whether the topology it prefers was found")
    gpus = serializers.DictField(
        child=serializers.ListField(child=serializers.IntegerField()), help_text="chosen by their links, per node"
    )
    ring_gbs = serializers.FloatField(help_text="of the slowest of these sets; 0: none was chosen")
    speed = SpeedSerializer(allow_null=True)


def placement_of(job: Job) -> dict[str, Any] | None:
    """Of its current attempt; None where no nodes were chosen."""
    binding = getattr(job, "binding", None)
    if binding is None or not binding.placement or binding.attempt != job.attempt or job.cluster_id is None:
        return None
    placement = binding.placement
    nodes = {role: [{"node": node, "pods": pods} for node, pods in runs] for role, runs in placement["nodes"].items()}
    chosen = {"gpus": placement.get("gpus") or {}, "ring_gbs": placement.get("ring_gbs") or 0.0}
    shown = {**placement, **chosen, "nodes": nodes, "speed": speeds.of_placed(job, placement)}
    return dict(PlacementSerializer(shown).data)


class SpeedsQuerySerializer(serializers.Serializer[Any]):
    model = serializers.CharField(required=False, help_text="one that was measured")
    gpus = serializers.IntegerField(min_value=1, max_value=100_000)
    step_seconds = serializers.FloatField(required=False, min_value=1e-6, max_value=1e6, help_text="instead of a model")
    gradient_bytes = serializers.FloatField(required=False, min_value=1, max_value=1e15, help_text="with step_seconds")


class SpeedsSerializer(serializers.Serializer[Any]):
    results = SpeedSerializer(many=True, help_text="by place, fastest first")


class SpeedsView(Guarded, APIView):
    kind = "Job"
    permission_classes = [ByRole]

    @extend_schema(parameters=[SpeedsQuerySerializer], responses=SpeedsSerializer)
    def get(self, request: Request) -> Response:
        """How fast a model trains on so many GPUs, by where they are."""
        query = SpeedsQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        parameters = query.validated_data
        training = _training(parameters)
        rows = [
            topology_speed.predict_speed(training, parameters["gpus"], *place)
            for place in topology_speed.places(parameters["gpus"])
        ]
        return Response(SpeedsSerializer({"results": rows}).data)


def _training(parameters: dict[str, Any]) -> topology_speed.Training:
    if "step_seconds" in parameters and "gradient_bytes" in parameters:
        for name in ("step_seconds", "gradient_bytes"):
            if not isfinite(parameters[name]):
                raise InvalidInput(f"{name} is no number", (FieldFault(name, "must be a finite number"),))
        step = network.Step(parameters["step_seconds"], parameters["gradient_bytes"])
        return topology_speed.Training(step)
    model = topology_speed.MODELS.get(str(parameters.get("model", "")).lower())
    if model is None:
        known = ", ".join(topology_speed.MODELS)
        message = f"must be one of {known}; for another give step_seconds and gradient_bytes"
        raise InvalidInput("the model is not known", (FieldFault("model", message),))
    return model
