"""What an operator may set of supply: when a member counts as lost, and how long history is kept."""

from dataclasses import dataclass

from fleet.core.operator_settings import setting

_YEAR_S = 366 * 86400.0


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """When a member counts as lost, and when its silence is taken for a fault of the control plane instead."""

    heartbeat_grace_s: float = setting(
        10.0,
        "CONVOY_HEARTBEAT_GRACE_S",
        "seconds without an answer before a member is NotReady and tainted",
        least=0.5,
        most=3600,
    )
    probe_timeout_s: float = setting(
        2.0,
        "CONVOY_PROBE_TIMEOUT_S",
        "seconds within which a member must answer a health check; one that is far away may need more",
        least=0.1,
        most=10,
    )
    watch_lease_s: float = setting(
        10.0,
        "CONVOY_WATCH_LEASE_S",
        "seconds of silence after which a watcher's members are watched by the others",
        least=3,
        most=600,
    )
    proxy_idle_s: float = setting(
        60.0,
        "CONVOY_PROXY_IDLE_S",
        "seconds of silence after which a request through the member proxy ends",
        least=1,
        most=86400,
    )
    proxy_stream_idle_s: float = setting(
        4 * 3600.0,
        "CONVOY_PROXY_STREAM_IDLE_S",
        "seconds of silence after which a watch, log or shell through the member proxy ends",
        least=1,
        most=7 * 86400,
    )
    picture_max_age_s: float = setting(
        20.0,
        "CONVOY_PICTURE_MAX_AGE_S",
        "seconds: a member that no watcher could confirm for this long gets no jobs, and nothing in it is judged",
        least=1,
        most=3600,
    )
    disruption_share: float = setting(
        0.5,
        "CONVOY_DISRUPTION_SHARE",
        "when more than this share of four or more members stops answering together, or all of two or more, no job is moved",
        most=1,
    )
    disruption_window_s: float = setting(
        300.0,
        "CONVOY_DISRUPTION_WINDOW_S",
        "seconds that members may have stopped answering apart and still count as together",
        most=86400,
    )
    circuit_failures: int = setting(
        3,
        "CONVOY_CIRCUIT_FAILURES",
        "dispatches in a row that a member leaves unanswered before its circuit opens: then only probes are sent to it",
        least=1,
        most=1000,
    )
    circuit_probe_s: float = setting(
        10.0,
        "CONVOY_CIRCUIT_PROBE_S",
        "seconds between two probes of a member whose circuit is open; the first that is answered closes it",
        least=1,
        most=300,
    )
    qps: float = setting(
        200.0,
        "CONVOY_MEMBER_QPS",
        "requests a second that one process sends to one member's API in the long run, besides watches and health checks",
        least=0.1,
        most=100_000,
    )
    burst: int = setting(
        400,
        "CONVOY_MEMBER_BURST",
        "requests that one process may send to one member's API at once, after as many seconds of rest as it needs for them",
        least=1,
        most=100_000,
    )
    token_s: int = setting(
        3600,
        "CONVOY_MEMBER_TOKEN_S",
        "seconds that the tokens last which the fleet asks members for, 600 at least; 0: it uses what they were joined with",
        most=86400,
    )
    fence_s: int = setting(
        120,
        "CONVOY_FENCE_S",
        "seconds without word from the fleet after which the agent in a member stops jobs of policies with `Fence`; longer "
        "than any upgrade or outage of the control plane that these jobs are to outlive",
        least=20,
        most=3600,
    )
    discovery_interval_s: float = setting(
        600.0,
        "CONVOY_DISCOVERY_INTERVAL_S",
        "seconds, give or take a fifth, after which a member is asked again what it serves; new kinds are noticed at once",
        least=5,
        most=86400,
    )


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """How users and scripts are let in."""

    token_max_s: float = setting(
        365 * 86400.0,
        "CONVOY_TOKEN_MAX_S",
        "seconds after which a token ends at the latest, also an older one; without a life of its own it lasts as long",
        least=60,
        most=20 * _YEAR_S,
    )
    second_factor_for_admins: bool = setting(
        False,
        "CONVOY_MFA_ADMINS",
        "true: fleet admins who sign in with a password need a second factor, and set one up at their next sign-in",
    )
    hsts_s: int = setting(
        31_536_000,
        "CONVOY_HSTS_S",
        "seconds for which browsers must use HTTPS alone (Strict-Transport-Security), with `CONVOY_HTTPS`; 0: not",
        most=10 * 31_536_000,
    )


@dataclass(frozen=True, slots=True)
class NodeExclusionSettings:
    """For how long nodes take no pods after faults, and when a node is excluded for every job."""

    first_lease_s: float = setting(
        3600.0,
        "CONVOY_NODE_LEASE_S",
        "seconds that a faulty node is excluded after its first fault; doubled by each further one",
        least=60,
        most=30 * 86400.0,
    )
    longest_lease_s: float = setting(
        86400.0,
        "CONVOY_NODE_LONGEST_LEASE_S",
        "seconds that a faulty node is excluded at the most after its last fault",
        least=60,
        most=90 * 86400.0,
    )
    memory_s: float = setting(
        86400.0,
        "CONVOY_NODE_FAULT_MEMORY_S",
        "seconds within which faults of a node count together, and without a fault after which they are forgotten",
        least=600,
        most=90 * 86400.0,
    )
    faults_for_everyone: int = setting(
        3,
        "CONVOY_NODE_FAULTS_FOR_EVERYONE",
        "times within that memory that a node has to fail jobs before it is excluded for all; only the member's word counts",
        least=2,
        most=1000,
    )
    most_share: float = setting(
        0.2,
        "CONVOY_NODE_MOST_SHARE",
        "share of a cluster's nodes that repeated faults exclude for all at the most, and one node in any case",
        most=1,
    )


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """How much history is kept; a minute's housekeeping deletes the rest in batches."""

    journal_lines: int = setting(
        100_000,
        "CONVOY_JOURNAL_LINES",
        "changes kept for watches to resume from; an older resourceVersion gets 410",
        least=1000,
    )
    events_s: float = setting(
        14 * 86400.0,
        "CONVOY_EVENTS_KEEP_S",
        "seconds that events of the timelines are kept",
        least=3600,
        most=10 * _YEAR_S,
    )
    audit_s: float = setting(
        180 * 86400.0, "CONVOY_AUDIT_KEEP_S", "seconds that lines of the audit are kept", least=86400, most=20 * _YEAR_S
    )
    finished_jobs_s: float = setting(
        90 * 86400.0,
        "CONVOY_FINISHED_JOBS_KEEP_S",
        "seconds after its end that a job without a `ttlSecondsAfterFinished` of its own is deleted with its history",
        least=86400,
        most=20 * _YEAR_S,
    )
    deleted_jobs_s: float = setting(
        30 * 86400.0,
        "CONVOY_DELETED_JOBS_KEEP_S",
        "seconds that the uid of a deleted job is remembered, so that what a late worker still sends for it is removed",
        least=3600,
        most=_YEAR_S,
    )


@dataclass(frozen=True, slots=True)
class LogSettings:
    """How much is kept of the logs of pods that have ended, to be read when the pod or its cluster is gone."""

    keep_s: float = setting(
        14 * 86400.0,
        "CONVOY_LOGS_KEEP_S",
        "seconds that the log of an ended pod is kept",
        least=60,
        most=10 * _YEAR_S,
    )
    total_bytes: int = setting(
        1024**3,
        "CONVOY_LOGS_KEEP_BYTES",
        "bytes, compressed, of all kept logs; beyond it the oldest of the largest namespace go first; 0: none are kept",
    )
    container_bytes: int = setting(
        1024**2,
        "CONVOY_LOGS_CONTAINER_BYTES",
        "bytes from the end of a container's log that are kept, before compression",
        least=1024,
        most=256 * 1024**2,
    )
    container_lines: int = setting(
        10_000,
        "CONVOY_LOGS_CONTAINER_LINES",
        "lines from the end of a container's log that are kept",
        least=1,
        most=10_000_000,
    )
    away_s: float = setting(
        86400.0,
        "CONVOY_LOGS_AWAY_S",
        "seconds for which a cluster that does not answer is asked again for a log before it counts as lost",
        least=60,
        most=_YEAR_S,
    )


@dataclass(frozen=True, slots=True)
class GpuSettings:
    """How often exporters of GPU readings in members are read, and when an allocated GPU counts as idle."""

    interval_s: float = setting(
        60.0,
        "CONVOY_GPU_READ_S",
        "seconds after which the dcgm-exporters of a member are read again, each with one request; 0: they are not read",
        least=10,
        most=3600,
        or_off=True,
    )
    keep_s: float = setting(
        3 * 86400.0,
        "CONVOY_GPU_READINGS_KEEP_S",
        "seconds that the utilisation of each GPU is kept, in steps of a minute",
        least=3600,
        most=90 * 86400.0,
    )
    idle_percent: float = setting(
        5.0,
        "CONVOY_GPU_IDLE_PERCENT",
        "percent of utilisation up to which an allocated GPU counts as idle",
        most=100,
    )
    idle_s: float = setting(
        1800.0,
        "CONVOY_GPU_IDLE_S",
        "seconds without a pause for which an allocated GPU is idle before its job is listed as idle",
        least=60,
        most=30 * 86400.0,
    )
