"""What an operator may set of demand: the scheduling cycle, dispatch to members, and failover. Handed down as arguments."""

from dataclasses import dataclass

from fleet.core.operator_settings import setting

_DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """The scheduling cycle: its lease, the size of a plan, and what it keeps between cycles."""

    lease_s: float = setting(
        30.0,
        "CONVOY_SCHEDULER_LEASE_S",
        "seconds after which another worker takes over from a scheduler that died; longer than its longest cycle",
        least=5,
        most=600,
    )
    max_postponed_preemptions: int = setting(
        2,
        "CONVOY_MAX_POSTPONED_PREEMPTIONS",
        "cycles in a row that plan no preemption while requests are unserved: capacity freed meanwhile may be room enough",
        most=100,
    )
    reason_refresh_s: float = setting(
        5.0,
        "CONVOY_REASON_REFRESH_S",
        "seconds before a changed amount in an otherwise unchanged waiting reason is written",
        most=600,
    )
    rejected_retry_s: float = setting(
        30.0,
        "CONVOY_REJECTED_RETRY_S",
        "seconds that a gang whose placement could not be planned or stored because of an error is left out of the plans",
        least=1,
        most=3600,
    )
    cache_max_age_s: float = setting(
        300.0,
        "CONVOY_SCHEDULER_CACHE_S",
        "seconds after which the scheduler's cache is loaded anew, although it follows every journalled change",
        least=1,
        most=_DAY_S,
    )
    cycle_overdue_s: float = setting(
        120.0,
        "CONVOY_CYCLE_OVERDUE_S",
        "seconds after which a requested cycle that was not completed makes `/readyz` fail; longer than the longest cycle",
        least=10,
        most=_DAY_S,
    )
    failures_refresh_s: float = setting(
        30.0,
        "CONVOY_FAILURES_REFRESH_S",
        "seconds between two counts of the recent failures that rank clusters",
        least=1,
        most=3600,
    )
    failure_half_life_s: float = setting(
        3600.0,
        "CONVOY_FAILURE_HALF_LIFE_S",
        "seconds after which a failure counts half as much against its cluster's score",
        least=60,
        most=30 * _DAY_S,
    )


@dataclass(frozen=True, slots=True)
class CycleSettings:
    """One scheduling cycle: how much it places and searches, and when it reserves nodes for a big gang."""

    max_placed: int = setting(
        250,
        "CONVOY_MAX_PLACED_PER_CYCLE",
        "gangs that one cycle places; the rest follows in the next, which comes at once",
        least=1,
        most=100_000,
    )
    max_preemption_searches: int = setting(
        50,
        "CONVOY_MAX_PREEMPTION_SEARCHES",
        "gangs that one cycle searches preemption targets for: the first in the order of the queues",
        least=1,
        most=10_000,
    )
    max_alike_preemptors: int = setting(
        20,
        "CONVOY_MAX_ALIKE_PREEMPTORS",
        "gangs of one equivalence class that may preempt in one cycle",
        least=1,
        most=10_000,
    )
    nomination_s: float = setting(
        60.0,
        "CONVOY_NOMINATION_S",
        "seconds that capacity freed by a preemption stays reserved for the preemptor after the last victim should be gone",
        least=1,
        most=_DAY_S,
    )
    big_gang_nodes: int = setting(
        8,
        "CONVOY_BIG_GANG_NODES",
        "whole nodes from which on a gang is big; in a cluster of fewer than twice as many, half of its nodes",
        least=1,
        most=100_000,
    )
    reservation_patience_s: float = setting(
        300.0,
        "CONVOY_BIG_GANG_PATIENCE_S",
        "seconds that a big gang waits before nodes are reserved for it",
        most=30 * _DAY_S,
    )
    share_half_life_s: float = setting(
        7 * _DAY_S,
        "CONVOY_SHARE_HALF_LIFE_S",
        "seconds after which GPU-time counts half in quota trees with `fair-share: OverTime`",
        least=3600,
        most=366 * _DAY_S,
    )
    estimate_trust_s: float = setting(
        _DAY_S,
        "CONVOY_ESTIMATE_TRUST_S",
        "seconds that a big gang waits before only gangs with a declared run time may be backfilled on its nodes",
        most=366 * _DAY_S,
    )
    unknown_runtime_s: float = setting(
        3600.0,
        "CONVOY_UNKNOWN_RUNTIME_S",
        "seconds that a gang is expected to run whose namespace has no ended job yet and that declares nothing",
        least=1,
        most=366 * _DAY_S,
    )
    max_priority: int = setting(
        1_000_000_000,
        "CONVOY_MAX_PRIORITY",
        "highest priority that a job of any user but a fleet admin may have; the quota tree's `max-priority` lowers it",
        most=2**31 - 1,
    )
    reservation_linger_s: float = setting(
        60.0,
        "CONVOY_RESERVATION_LINGER_S",
        "seconds that reserved nodes stay reserved after they can no longer be planned: an ended job is known before its pods",
        most=3600,
    )


@dataclass(frozen=True, slots=True)
class DispatchSettings:
    """Sending decisions to members."""

    claim_s: float = setting(
        30.0,
        "CONVOY_CLAIM_S",
        "seconds after which a worker that is silent about a work it claimed is taken for dead; longer than a call to a member",
        least=15,
        most=600,
    )
    longest_retry_s: float = setting(
        30.0,
        "CONVOY_DISPATCH_RETRY_S",
        "seconds between two tries of a work that fails, at most: the wait doubles from 0.4 s",
        least=1,
        most=300,
    )
    member_threads: int = setting(
        4,
        "CONVOY_MEMBER_THREADS",
        "threads of a worker that dispatches to one member hold at most, and those to all slow members together; never more "
        "than half of the worker's",
        least=1,
        most=1000,
    )
    reservation_wait_s: float = setting(
        60.0,
        "CONVOY_RESERVATION_WAIT_S",
        "seconds for all Reservations of a gang to be available; then the next cluster is tried",
        least=1,
        most=3600,
    )
    reservation_ttl_s: float = setting(
        600.0,
        "CONVOY_RESERVATION_TTL_S",
        "seconds after which a Reservation that no pod has taken ends; longer than the wait and a slow start together",
        least=30,
        most=_DAY_S,
    )


@dataclass(frozen=True, slots=True)
class FailoverSettings:
    """When jobs leave their clusters, how often they are tried again, and how long a cluster is avoided."""

    cluster_toleration_s: float = setting(
        60.0,
        "CONVOY_CLUSTER_TOLERATION_S",
        "seconds that a job stays on a tainted cluster when its policy says nothing",
        most=30 * _DAY_S,
    )
    lost_node_s: float = setting(
        20.0,
        "CONVOY_LOST_NODE_S",
        "seconds that a node may be not ready before it counts as lost: jobs leave it, and nothing waits for pods there",
        least=1,
        most=_DAY_S,
    )
    start_timeout_s: float = setting(
        600.0,
        "CONVOY_START_TIMEOUT_S",
        "seconds for a member to run all pods of a gang before it is withdrawn and placed elsewhere",
        least=1,
        most=30 * _DAY_S,
    )
    cool_off_s: float = setting(
        300.0,
        "CONVOY_COOL_OFF_S",
        "seconds that a cluster is excluded for a job after the job's first failure there; doubled by each further one",
        least=1,
        most=30 * _DAY_S,
    )
    evictions_per_minute: int = setting(
        1000,
        "CONVOY_EVICTIONS_PER_MINUTE",
        "jobs that may leave one cluster within a minute because it is tainted or has lost nodes",
        least=1,
    )
    max_attempts: int = setting(
        6,
        "CONVOY_MAX_ATTEMPTS",
        "failures before a job fails for good; a policy's annotation `convoy.dev/max-attempts` goes before it",
        least=1,
        most=1000,
    )
    max_code_errors: int = setting(
        2,
        "CONVOY_MAX_CODE_ERRORS",
        "failures by an error of the program itself (exit codes 1 to 127) before a job fails for good; "
        "a policy's `convoy.dev/failure-budgets: CodeError=N` goes before it",
        least=1,
        most=1000,
    )
    max_out_of_memory: int = setting(
        2,
        "CONVOY_MAX_OUT_OF_MEMORY",
        "times that a job may run out of memory before it fails for good; a policy's `OutOfMemory=N` goes before it",
        least=1,
        most=1000,
    )
    crash_loop_restarts: int = setting(
        3,
        "CONVOY_CRASH_LOOP_RESTARTS",
        "restarts of a pod in place from which on a job counts as unhealthy while that pod does not keep running",
        least=1,
        most=1000,
    )
    crash_loop_s: float = setting(
        600.0,
        "CONVOY_CRASH_LOOP_S",
        "seconds that pods may restart again and again before a job fails whose policy says nothing of application failover",
        least=1,
        most=30 * _DAY_S,
    )


@dataclass(frozen=True, slots=True)
class SeriesSettings:
    """Values over time: how long each step of them is kept, and how many there may be."""

    fine_s: float = setting(
        2 * 3600.0,
        "CONVOY_SERIES_FINE_KEEP_S",
        "seconds that values over time are kept in steps of 10 s; then in steps of a minute",
        least=3600,
        most=7 * _DAY_S,
    )
    minute_s: float = setting(
        2 * _DAY_S,
        "CONVOY_SERIES_MINUTE_KEEP_S",
        "seconds that values over time are kept in steps of a minute; then in steps of an hour",
        least=3 * 3600,
        most=90 * _DAY_S,
    )
    hour_s: float = setting(
        400 * _DAY_S,
        "CONVOY_SERIES_HOUR_KEEP_S",
        "seconds that values over time are kept at all",
        least=2 * _DAY_S,
        most=20 * 366 * _DAY_S,
    )
    most: int = setting(
        20_000,
        "CONVOY_SERIES_MAX",
        "values kept over time: each of each cluster, GPU model, queue and team is one; beyond it new ones are not recorded",
        least=100,
        most=1_000_000,
    )
