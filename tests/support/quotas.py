"""A quota tree in a few words, and its application, for the stories."""

from typing import Any

from django.utils import timezone

from quotas.services import trees
from tests.quotas.core.builders import manifest, quota

GPU = "nvidia.com/gpu"
JOBS = "kube-queue/max-jobs"
PLENTY = {"cpu": 10**5, "memory": "400000Gi", GPU: 1000, JOBS: 1000, "pods": 1000}


def gpus(low: int, high: int) -> dict[str, Any]:
    return {"min": {GPU: low}, "max": {GPU: high}}


def leaf(name: str, namespace: str = "", *children: dict[str, Any], **fields: Any) -> dict[str, Any]:
    body = {"name": name, **fields, **({"namespaces": [namespace]} if namespace else {})}
    return {**body, "children": list(children)} if children else body


def apply_tree(
    *children: dict[str, Any], total: dict[str, Any] | None = None, attributes: dict[str, str] | None = None
) -> None:
    """Applies a tree whose root has room for everything, or ``total``."""
    whole = total or PLENTY
    body = manifest(quota("root", whole, whole, *children, **({"attributes": attributes} if attributes else {})))
    trees.apply(body, by="system", now=timezone.now())


def ledger_is_exact() -> bool:
    """Whether everybody who holds something is charged, and nobody else (invariant I9)."""
    from jobs.models import Job

    on = Job.objects.filter(state__in=Job.ON_MEMBER).exclude(leaf="").exclude(charge__isnull=False)
    ended = Job.objects.filter(state__in=Job.FINISHED, charge__isnull=False)
    return not on.exists() and not ended.exists()
