"""Entitlement as rows: the one quota tree, and the queues made from it."""

from quotas.models.queue import Queue
from quotas.models.tree import QuotaTree

__all__ = ["Queue", "QuotaTree"]
