"""Reclaim through the services when a team submits more jobs than its min holds, alike or not: what fits its min is served."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from jobs.models import Job
from jobs.services.lifecycle import cycle_requests
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import GPU, team
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
WHOLE = {"cpu": 10**5, "memory": "900000Gi", GPU: 16, "kube-queue/max-jobs": 1000}
LABEL = "quota.scheduling.alibabacloud.com/name"


def job(name: str, leaf: str, gpus: int, priority: int = 0, **annotations: str) -> str:
    body = yaml.safe_load(pytorch_job(name, workers=0, gpus=gpus))
    body["metadata"] |= {"labels": {LABEL: leaf}, "annotations": {"convoy.dev/priority": str(priority), **annotations}}
    return yaml.safe_dump(body)


def borrowed(*leaves: dict, by: str) -> None:
    """Both places of 8 GPUs are in use by a queue of which one or both may be preempted."""
    books.a_cluster(gpus=16)
    trees.apply(manifest(quota("root", WHOLE, WHOLE, *leaves)), by="system", now=timezone.now())
    books.apply(job("r0", by, 8), job("r1", by, 8))
    books.cycle()
    books.sent()
    started = timezone.now() - timedelta(hours=1)
    assert Job.objects.filter(state="Placed").update(state="Running", started_at=started) == 2


def states(prefix: str) -> list[str]:
    return sorted(Job.objects.filter(name__startswith=prefix).values_list("state", flat=True))


def reasons(prefix: str) -> list[str]:
    return sorted(row["code"] for row in Job.objects.filter(name__startswith=prefix).values_list("reason", flat=True))


def settled() -> None:
    for _ in range(4):
        cycle_requests.request()
        books.cycle()


@pytest.mark.parametrize("waiting", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("differ", ["alike", "in priority", "in size"])
def test_it_preempts_a_borrower_for_the_one_that_its_queue_was_promised_however_many_wait(waiting, differ):
    borrowed(team("a", 8, 16), team("b", 0, 16), by="b")
    many = range(waiting)
    sizes = [8 - i % 3 if differ == "in size" else 8 for i in many]
    books.apply(*(job(f"w{i:02}", "a", sizes[i], 100 - i if differ == "in priority" else 0) for i in many))
    settled()
    assert states("r") == ["Reclaiming", "Running"]
    assert reasons("w").count("WaitingForReclaim") == 1


@pytest.mark.parametrize("waiting", [1, 2, 3, 5, 20])
def test_it_preempts_lower_priorities_of_the_own_queue_however_many_wait(waiting):
    policy = {"attributes": {"preempt-policy": "PreemptLowerPriority"}}
    borrowed(quota("a", {GPU: 16}, {GPU: 16}, **policy), by="a")
    books.apply(*(job(f"w{i:02}", "a", 8, 5) for i in range(waiting)))
    settled()
    preempted = min(waiting, 2)
    assert states("r") == ["Reclaiming"] * preempted + ["Running"] * (2 - preempted)
    assert reasons("w").count("WaitingForReclaim") == preempted
