"""Demand as rows: jobs, the policies that steer them, what was decided and what was sent."""

from jobs.models.binding import Attempt, Binding, DeletedJob, Work
from jobs.models.claim import ClaimLocation
from jobs.models.dependent import Dependent
from jobs.models.eviction import EvictionWindow
from jobs.models.job import Job
from jobs.models.policy import Policy

__all__ = ["Attempt", "Binding", "ClaimLocation", "DeletedJob", "Dependent", "EvictionWindow", "Job", "Policy", "Work"]
