"""A job's past over REST: whose hands it was in and how long, the gates it has to pass, and its copy in the member."""

from typing import Any

from rest_framework import serializers

from jobs.core.explain.timeline import Gate, Owner, Passage
from jobs.services.inspect.history import Timeline


class SliceSerializer(serializers.Serializer[Any]):
    owner = serializers.ChoiceField([(each.value, each.name) for each in Owner])
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField(help_text="of a slice that is open: now")
    open = serializers.BooleanField(help_text="it goes on")
    seconds = serializers.FloatField()
    attempt = serializers.IntegerField(help_text="0: it was placed nowhere then")
    cluster = serializers.CharField(allow_blank=True)


class OwnerTotalSerializer(serializers.Serializer[Any]):
    owner = serializers.ChoiceField([(each.value, each.name) for each in Owner])
    seconds = serializers.FloatField()


class GateSerializer(serializers.Serializer[Any]):
    gate = serializers.ChoiceField([(each.value, each.name) for each in Gate])
    passage = serializers.ChoiceField([(each.value, each.name) for each in Passage])


class TimelineSerializer(serializers.Serializer[Any]):
    submitted_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True, help_text="null: it goes on")
    now = serializers.DateTimeField(help_text="the server's, which open slices end with")
    slices = SliceSerializer(many=True, help_text="in order; gaps are times without an owner")
    totals = OwnerTotalSerializer(many=True)
    gates = GateSerializer(many=True, help_text="in their order")


class CopySerializer(serializers.Serializer[Any]):
    """The job's manifest in its member."""

    cluster = serializers.CharField()
    attempt = serializers.IntegerField()
    manifest = serializers.DictField()


def shown(timeline: Timeline) -> Any:
    return TimelineSerializer(
        {
            "submitted_at": timeline.submitted_at,
            "ended_at": timeline.ended_at,
            "now": timeline.now,
            "slices": timeline.slices,
            "totals": [{"owner": owner, "seconds": seconds} for owner, seconds in timeline.totals.items()],
            "gates": [{"gate": gate, "passage": passage} for gate, passage in timeline.gates],
        }
    ).data
