"""What the fleet counts and times about itself, for Prometheus. Labels are bounded: clusters, verbs, tasks; never an object.

Counters and histograms only: they add up over processes, whichever of them serves the numbers.
"""

from prometheus_client import Counter, Histogram

_REQUEST_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_TASK_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

MEMBER_REQUEST_SECONDS = Histogram(
    "convoy_member_request_duration_seconds",
    "Time until a member's API answered a request; code is its HTTP status, or 'unreachable'",
    ["cluster", "verb", "code"],
    buckets=_REQUEST_S,
)
WATCH_RESTARTS = Counter(
    "convoy_watch_restarts_total", "Watches of a member that ended with an error and were opened again", ["cluster"]
)
ISOLATED_FAILURES = Counter(
    "convoy_isolated_failures_total",
    "Objects that a pass left out because handling them raised an exception; they are tried again",
    ["step"],
)
CIRCUITS_OPENED = Counter(
    "convoy_member_circuit_opened_total",
    "Times that a member left so many dispatches unanswered that it got only probes",
    ["cluster"],
)
TASK_SECONDS = Histogram("convoy_task_duration_seconds", "Run time of a background task", ["task"], buckets=_TASK_S)
RECONCILE_ERRORS = Counter("convoy_reconcile_errors_total", "Background tasks that ended with an exception", ["task"])
