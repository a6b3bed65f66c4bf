"""A wide quota tree, and jobs of it as rows: half of its teams hold everything, and every leaf waits for its min."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from jobs.models import Job
from quotas.models import QuotaTree
from tests.quotas.core.builders import manifest, quota

GPU = "nvidia.com/gpu"


def many_leaves(teams: int, leaves: int, *, lower: bool = False) -> dict[str, Any]:
    """Each leaf has a min of 2 of the 4 GPUs that there are for each; ``lower``: in the first team of 1."""
    whole = 4 * teams * leaves
    children = [
        quota(
            f"t{t}",
            {GPU: 2 * leaves},
            {GPU: whole},
            *(
                quota(f"l{i}", {GPU: 1 if lower and t == 0 else 2}, {GPU: whole}, namespaces=[f"n{t}-{i}"])
                for i in range(leaves)
            ),
        )
        for t in range(teams)
    ]
    total = {GPU: whole, "kube-queue/max-jobs": 100_000}
    return manifest(quota("root", total, total, *children))


def give(teams: int, leaves: int, *, running: int, waiting: int) -> None:
    """The first half of the teams runs all of the running jobs; the waiting ones come in every leaf in turn."""
    version = QuotaTree.objects.get().resource_version
    rows = [_job(i, i % (teams // 2), i // (teams // 2) % leaves, version, runs=True) for i in range(running)]
    rows += [_job(running + i, i % teams, i // teams % leaves, version, runs=False) for i in range(waiting)]
    Job.objects.bulk_create(rows, batch_size=200)


def _job(number: int, team: int, leaf: int, version: int, *, runs: bool) -> Job:
    now, name = timezone.now(), f"job-{number}"
    template = {"spec": {"containers": [{"name": "main", "image": "example.com/train"}]}}
    spec = {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": template}}}
    total = {GPU: 1, "pods": 1}
    return Job(
        api_version="kubeflow.org/v1", kind="PyTorchJob", namespace=f"n{team}-{leaf}", name=name,
        manifest={"metadata": {"name": name}, "spec": spec},
        roles=[{"name": "Master", "replicas": 1, "request": {GPU: 1}}], total=total, gpus=1,
        leaf=f"root/t{team}/l{leaf}", tree_version=version, charge={**total, "kube-queue/max-jobs": 1} if runs else None,
        state=Job.State.RUNNING if runs else Job.State.QUEUED, created_at=now, queued_at=now,
        started_at=now - timedelta(seconds=number) if runs else None,
    )  # fmt: skip
