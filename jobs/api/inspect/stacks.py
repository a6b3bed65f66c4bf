"""The merged stacks of a job's ranks over REST."""

from typing import Any

from rest_framework import serializers

from jobs.runtime import stacks


class StackLineSerializer(serializers.Serializer[Any]):
    depth = serializers.IntegerField(help_text="how many callers it has")
    function = serializers.CharField(source="frame.function")
    file = serializers.CharField(source="frame.source", help_text="with the line")
    ranks = serializers.SerializerMethodField(help_text="the ranks that have it: 1-3/9/11-15")
    others = serializers.SerializerMethodField(help_text="the ranks that do not")
    text = serializers.SerializerMethodField(help_text="function@file:line@ranks|others")

    def get_ranks(self, line: stacks.Line) -> str:
        return stacks.fold(line.ranks)

    def get_others(self, line: stacks.Line) -> str:
        return stacks.fold(line.others)

    def get_text(self, line: stacks.Line) -> str:
        return str(line)


class StacksSerializer(serializers.Serializer[Any]):
    lines = StackLineSerializer(many=True, help_text="callers before what they call")
    ranks = serializers.SerializerMethodField(help_text="the ranks of which there are stacks: 0-15")
    suspects = serializers.SerializerMethodField(help_text="the ranks that are missing where most of the others wait")
    pods_without = serializers.ListField(child=serializers.CharField(), help_text="pods whose logs have no stacks")
    warnings = serializers.ListField(child=serializers.CharField(), help_text="which logs are missing, and why")

    def get_ranks(self, read: Any) -> str:
        return stacks.fold(read.ranks)

    def get_suspects(self, read: Any) -> str:
        return stacks.fold(read.suspects)
