"""What applying and deleting manifests answers, document by document."""

from typing import Any

from rest_framework import serializers


class AppliedSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    id = serializers.CharField(source="uid", help_text="as in the paths of jobs, policies and dependents")
    action = serializers.ChoiceField(["created", "configured", "unchanged"])
    warnings = serializers.ListField(child=serializers.CharField())


class AppliedListSerializer(serializers.Serializer[Any]):
    results = AppliedSerializer(many=True)


class DeletedSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    action = serializers.ChoiceField(["deleted", "deleting", "absent"])


class DeletedListSerializer(serializers.Serializer[Any]):
    results = DeletedSerializer(many=True)
