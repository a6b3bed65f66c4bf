"""Marks on what is sent to a member, and whether one that is found there is genuine.

The keys are those that encrypt secrets at rest: a mark outlives a rotation as long as its key stays in the list. A member is
named by its own identity, so that marks hold when it is detached and joined again, or when the database is restored.
"""

from functools import lru_cache

from django.conf import settings

from fleet.core.members.marks import Signer
from fleet.models import Cluster


@lru_cache(maxsize=4)
def _signer(keys: tuple[str, ...]) -> Signer:
    return Signer(keys)


def sign(cluster: Cluster, *parts: str) -> str:
    return _signer(tuple(settings.CONVOY_ENCRYPTION_KEYS)).sign(_names(cluster)[0], *parts)


def is_genuine(cluster: Cluster, mark: object, *parts: str) -> bool:
    signer = _signer(tuple(settings.CONVOY_ENCRYPTION_KEYS))
    return any(signer.is_genuine(mark, name, *parts) for name in _names(cluster))


def sign_pods(cluster: Cluster, job_uid: str, attempt: int, namespace: str) -> str:
    """For every pod of an attempt: their names are their operator's choice."""
    return sign(cluster, "pods", job_uid, str(attempt), namespace)


def are_its_pods(cluster: Cluster, mark: object, job_uid: str, attempt: int, namespace: str) -> bool:
    return is_genuine(cluster, mark, "pods", job_uid, str(attempt), namespace)


def _names(cluster: Cluster) -> list[str]:
    """The member's own identity first; one that could not be read when it was joined is known by its row."""
    return [name for name in (cluster.member_uid, str(cluster.uid)) if name]
