"""What a job's runtime says of it over REST: its facts, its checkpoints and its ranks."""

from typing import Any

from rest_framework import serializers

from jobs.runtime.facts import Kind


class FactSerializer(serializers.Serializer[Any]):
    """As the log has it; what it does not say is null or empty."""

    event = serializers.ChoiceField([(kind.value, kind.name) for kind in Kind], source="kind")
    at = serializers.DateTimeField(allow_null=True)
    pod = serializers.CharField()
    node = serializers.CharField(help_text="empty: it does not say")
    round = serializers.IntegerField(allow_null=True, help_text="of a rendezvous or a node check")
    rank = serializers.IntegerField(allow_null=True)
    world_size = serializers.IntegerField(allow_null=True)
    seconds = serializers.FloatField(allow_null=True, help_text="how long it took")
    restarts = serializers.IntegerField(allow_null=True, help_text="of the processes in their pod, so far")
    remaining = serializers.IntegerField(allow_null=True, help_text="restarts that are left")
    exit_code = serializers.IntegerField(allow_null=True)
    step = serializers.IntegerField(allow_null=True, help_text="of a checkpoint")
    tier = serializers.CharField(help_text="of a checkpoint: memory or disk")
    ok = serializers.BooleanField(allow_null=True, help_text="whether a check or a checkpoint succeeded")
    message = serializers.CharField()


class CheckpointSerializer(serializers.Serializer[Any]):
    """One checkpoint of the whole job, put together from what its pods say; what they do not say is null."""

    step = serializers.IntegerField()
    tier = serializers.CharField(help_text="memory or disk, or what the script calls it")
    at = serializers.DateTimeField(allow_null=True, help_text="when the last of it was saved")
    pod = serializers.CharField(help_text="the first that said so")
    ok = serializers.BooleanField(allow_null=True, help_text="false: a shard of it was not saved")
    seconds = serializers.FloatField(
        allow_null=True, help_text="of its slowest shard; in memory the training waits for so long, to disk it does not"
    )
    shards_done = serializers.IntegerField(allow_null=True)
    shards_total = serializers.IntegerField(allow_null=True)
    committed = serializers.BooleanField(
        allow_null=True, help_text="whether all of it is on disk, so that a training can begin from it"
    )


class RankedPodSerializer(serializers.Serializer[Any]):
    pod = serializers.CharField()
    role = serializers.CharField()
    index = serializers.IntegerField()
    node = serializers.CharField()
    ranks = serializers.ListField(child=serializers.IntegerField(), help_text="empty: its log does not say")
    world_size = serializers.IntegerField(allow_null=True)
    restarts = serializers.IntegerField(allow_null=True)


class RuntimeSerializer(serializers.Serializer[Any]):
    facts = FactSerializer(many=True, help_text="the latest 200 at most, oldest first")
    checkpoints = CheckpointSerializer(many=True, help_text="the latest 200 at most, oldest first")
    ranks = RankedPodSerializer(many=True)
    warnings = serializers.ListField(child=serializers.CharField(), help_text="which logs are missing, and why")
