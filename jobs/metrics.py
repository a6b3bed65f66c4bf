"""What scheduling, preemption, failover and dispatch count and time, under Kueue's names where the meaning is the same.

Labels are bounded: quota leaves, reasons, clusters; never a job's name. A job outside the quota tree has queue ``""``.
"""

from prometheus_client import Counter, Histogram

_WAIT_S = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 28800, 86400, 259200)
_CYCLE_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
_DISPATCH_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

ADMISSION_ATTEMPTS = Counter(
    "convoy_admission_attempts_total",
    "Scheduling cycles by result: success (a gang was placed), inadmissible (none was), dropped (the lease was lost)",
    ["result"],
)
ADMISSION_ATTEMPT_SECONDS = Histogram(
    "convoy_admission_attempt_duration_seconds", "Length of a scheduling cycle", ["result"], buckets=_CYCLE_S
)
CYCLE_STEP_SECONDS = Histogram(
    "convoy_admission_cycle_step_duration_seconds",
    "Length of one step of a scheduling cycle: snapshot, plan, preemption, apply",
    ["step"],
    buckets=_CYCLE_S,
)
ADMITTED = Counter("convoy_admitted_workloads_total", "Jobs that were placed", ["queue"])
ADMISSION_WAIT_SECONDS = Histogram(
    "convoy_admission_wait_time_seconds",
    "Time from submission until a job was placed for the first time",
    ["queue"],
    buckets=_WAIT_S,
)
REJECTED = Counter("convoy_rejected_placements_total", "Placements that the database refused")
PREEMPTED = Counter(
    "convoy_preempted_workloads_total",
    "Running jobs that were ordered to leave for another job or for a stopped queue",
    ["queue", "reason"],
)
EVICTED = Counter("convoy_evicted_workloads_total", "Placed jobs that lost their place", ["queue", "reason"])
RESIZES = Counter(
    "convoy_resizes_total", "Sizes of running jobs that were changed, by direction: shrink or grow", ["direction"]
)
CAUSES_OF_NOTICES = frozenset(
    {
        "reclaim",
        "Fleet",
        "DisruptionTarget",
        "NodeDeleted",
        "ack-spot",
        "eci-spot",
        "aws-spot",
        "aws-scheduled",
        "gcp-termination",
        "azure-eviction",
    }
)
"""Labels of `NOTICES`: what else a member says is counted as other."""
NOTICES = Counter(
    "convoy_notices_total",
    "Pods that left after a notice that their place is taken back, by cause and outcome: heard or unheard",
    ["cause", "outcome"],
)
NOTICE_TO_SAVED_SECONDS = Histogram(
    "convoy_notice_to_saved_seconds",
    "Time from a notice that was heard, or followed by a saved step, until the process had ended",
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 180, 300, 600),
)
RESTART_SECONDS = Histogram(
    "convoy_restart_seconds",
    "Time from the end of an attempt until the next attempt of its job ran, by how the former one ended",
    ["cause"],
    buckets=_WAIT_S,
)
DISPATCH_SECONDS = Histogram(
    "convoy_dispatch_duration_seconds",
    "Length of one try to bring a decision to a member",
    ["cluster", "result"],
    buckets=_DISPATCH_S,
)
PLACED_TO_SENT_SECONDS = Histogram(
    "convoy_placement_to_dispatch_seconds",
    "Time from the decision for a cluster until the member had accepted the job",
    ["cluster"],
    buckets=_DISPATCH_S,
)
