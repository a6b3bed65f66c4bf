"""The diagnosis of a failed attempt over REST."""

from typing import Any

from rest_framework import serializers

from jobs.core.failover.diagnosis import Class
from jobs.core.failover.symptoms import Symptom


class DiagnosisSerializer(serializers.Serializer[Any]):
    """Why an attempt failed, by the state of its pods and the end of the logs of those that ended first."""

    category = serializers.ChoiceField(
        [(kind.value, kind.name) for kind in Class],
        help_text="whose fault it is: of the code, the data, the infrastructure ...",
    )
    symptom = serializers.ChoiceField(
        [(symptom.value, symptom.name) for symptom in Symptom], required=False, help_text="what the log shows"
    )
    summary = serializers.CharField(help_text="all of it in one line")
    message = serializers.CharField(help_text="the message of the failing process, for example its exception")
    rank = serializers.IntegerField(required=False, help_text="the rank that failed, if its log names it")
    where = serializers.CharField(required=False, help_text="file, line and function")
    excerpt = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="lines of the log, at most 12"
    )
    pod = serializers.CharField(required=False)
    node = serializers.CharField(required=False)
    exit_code = serializers.IntegerField(required=False)
