"""Demand as rows: jobs, the policies that steer them, what was decided and what was sent."""

from jobs.models.binding import Attempt, Binding, DeletedJob, Work
from jobs.models.claim import ClaimLocation
from jobs.models.dependency import Dependency
from jobs.models.dependent import Dependent
from jobs.models.eviction import EvictionWindow
from jobs.models.hang import Hang, Pace
from jobs.models.incident import Incident
from jobs.models.job import Job
from jobs.models.notice import Notice
from jobs.models.policy import Policy
from jobs.models.preserved_state import PreservedState
from jobs.models.progress import Progress, RuntimeFact
from jobs.models.series import Series, SeriesPoint, SeriesProgress
from jobs.models.usage_span import UsageSpan
from jobs.models.use import DeletedUse

__all__ = [
    "Attempt",
    "Binding",
    "ClaimLocation",
    "DeletedJob",
    "DeletedUse",
    "Dependency",
    "Dependent",
    "EvictionWindow",
    "Hang",
    "Incident",
    "Job",
    "Notice",
    "Pace",
    "Policy",
    "PreservedState",
    "Progress",
    "RuntimeFact",
    "Series",
    "SeriesPoint",
    "SeriesProgress",
    "UsageSpan",
    "Work",
]
