"""Convoy's Python SDK: jobs of a fleet of Kubernetes clusters, from programs and notebooks.

    from convoy import Fleet

    job = Fleet().submit("train.yaml")
    job.wait()
    print(*job.logs(), sep="\\n")

`AsyncFleet` is the same with ``await``. Values that the API answers are plain dictionaries; `convoy.types` has their types.
"""

from convoy.aio import AsyncFleet, AsyncJob
from convoy.errors import ConvoyError, JobFailed, NotFound, Refused, TimedOut, Unreachable
from convoy.fleet import Fleet, Job
from convoy.views import Explanation, JobList

__all__ = [
    "AsyncFleet",
    "AsyncJob",
    "ConvoyError",
    "Explanation",
    "Fleet",
    "Job",
    "JobFailed",
    "JobList",
    "NotFound",
    "Refused",
    "TimedOut",
    "Unreachable",
]
