"""Entitlement as rows: the one quota tree, what it was, the queues made from it, and who may change a part."""

from quotas.models.grant import QuotaGrant
from quotas.models.queue import Queue
from quotas.models.revision import QuotaRevision
from quotas.models.tree import QuotaTree

__all__ = ["Queue", "QuotaGrant", "QuotaRevision", "QuotaTree"]
