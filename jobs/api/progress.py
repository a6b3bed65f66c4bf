"""What a training reports of itself, over REST."""

from rest_framework import serializers

from jobs.models import Progress


class ProgressSerializer(serializers.ModelSerializer[Progress]):
    """What the job's training reports of itself. It decides nothing."""

    attempt = serializers.IntegerField(help_text="the attempt that reported it")
    step = serializers.IntegerField(allow_null=True, help_text="steps that are done")
    total = serializers.IntegerField(allow_null=True)
    percent = serializers.SerializerMethodField(help_text="of its steps; where it reports none, as it reported it")
    eta_s = serializers.IntegerField(allow_null=True, help_text="seconds to its end, as it estimated then")
    loss = serializers.FloatField(allow_null=True)
    world_size = serializers.IntegerField(allow_null=True)
    saved_step = serializers.IntegerField(allow_null=True, help_text="of its last checkpoint")

    class Meta:
        model = Progress
        fields = ("attempt", "step", "total", "percent", "eta_s", "loss", "world_size", "saved_step", "reported_at")

    def get_percent(self, row: Progress) -> int | None:
        return row.percent_done
