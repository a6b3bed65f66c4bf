"""Reads the operator's settings from the environment, all at once, so that every bad one is named before anything starts."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from fleet.core.operator_settings import SettingInvalid, read_settings, setting
from fleet.core.settings import (
    AccessSettings,
    GpuSettings,
    LogSettings,
    MemberSettings,
    NodeExclusionSettings,
    RetentionSettings,
)
from fleet.limits.settings import Limits
from jobs.core.policies.weights import Weights
from jobs.core.settings import CycleSettings, DispatchSettings, FailoverSettings, SchedulerSettings, SeriesSettings


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """Connections of one process."""

    head_s: float = setting(
        15.0,
        "CONVOY_HEAD_S",
        "seconds within which the head of a request must have come; a slower one is answered 408 and hung up on",
        least=1,
        most=3600,
    )
    body_s: float = setting(
        60.0,
        "CONVOY_BODY_S",
        "seconds within which the body of a request must have come after its head",
        least=1,
        most=3600,
    )
    send_s: float = setting(
        60.0,
        "CONVOY_SEND_S",
        "seconds for which a caller may leave an answer, a list or a watch, unread; then it is hung up on",
        least=1,
        most=3600,
    )
    kube_port: int = setting(8443, "CONVOY_KUBE_PORT", "port of the Kubernetes-style API", least=1, most=65535)
    database_pool: int = setting(
        16, "CONVOY_DATABASE_POOL", "PostgreSQL connections of one process at the most", least=2, most=1000
    )
    transaction_idle_s: float = setting(
        60.0,
        "CONVOY_TRANSACTION_IDLE_S",
        "seconds after which PostgreSQL ends a transaction in which nothing happens, and gives its locks free; 0: never",
        least=0,
        most=86400,
    )


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    scheduler: SchedulerSettings
    cycle: CycleSettings
    weights: Weights
    dispatch: DispatchSettings
    failover: FailoverSettings
    members: MemberSettings
    access: AccessSettings
    node_exclusions: NodeExclusionSettings
    retention: RetentionSettings
    logs: LogSettings
    series: SeriesSettings
    gpus: GpuSettings
    limits: Limits
    process: ProcessSettings


CLASSES: Mapping[str, type] = {known.name: known.type for known in fields(OperatorSettings)}  # type: ignore[misc]


def read_all(environ: Mapping[str, str]) -> OperatorSettings:
    """Raises `ImproperlyConfigured` naming every variable that makes no sense, its value and the remedy."""
    values: dict[str, Any] = {}
    faults: list[str] = []
    for name, cls in CLASSES.items():
        try:
            values[name] = read_settings(cls, environ)
        except SettingInvalid as e:
            faults.append(str(e))
    if faults:
        raise ImproperlyConfigured("; ".join(faults))
    return OperatorSettings(**values)
