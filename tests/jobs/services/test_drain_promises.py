"""Nodes kept for a big gang through the services: the team that was promised them gets them first."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.models import Cluster
from jobs.models import Job
from jobs.services.scheduling import loop
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import APIS, GPU, team
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
LABEL = "quota.scheduling.alibabacloud.com/name"


def job(name: str, leaf: str, workers: int = 0) -> str:
    body = yaml.safe_load(pytorch_job(name, workers=workers, gpus=8))
    body["metadata"] |= {"labels": {LABEL: leaf}}
    return yaml.safe_dump(body)


def eight_nodes() -> None:
    now = timezone.now()
    north = Cluster.objects.create(
        name="north", access={}, state=Cluster.State.READY, apis=APIS, state_since=now, joined_at=now, synced_at=now
    )
    for i in range(8):
        offered = {"cpu": 10**5, "memory": 2**40, GPU: 8, "pods": 110}
        north.nodes.create(name=f"node-{i}", ready=True, allocatable=offered)


@pytest.mark.parametrize("waited_s", [0, 600])
def test_it_places_the_job_within_min_and_not_the_big_gang_that_would_borrow(waited_s):
    eight_nodes()
    whole = {"cpu": 10**6, "memory": "900000Gi", GPU: 64, "kube-queue/max-jobs": 1000}
    tree = manifest(quota("root", whole, whole, team("a", 40, 40), team("b", 24, 64)))
    trees.apply(tree, by="system", now=timezone.now())
    books.apply(*(job(f"a{i}", "a") for i in range(5)))
    books.cycle()
    books.sent()
    Job.objects.filter(state="Placed").update(state="Running", started_at=timezone.now() - timedelta(hours=1))
    books.apply(job("a5", "a"), job("a6", "a"), job("big", "b", workers=3))
    long_ago = timezone.now() - timedelta(seconds=waited_s)
    Job.objects.filter(name="big").update(queued_at=long_ago)
    loop._idle_caches.clear()
    books.cycle()
    assert books.job("big").state == books.job("a5").state == "Queued"
    books.end("a0")
    books.cycle()
    assert (books.job("a5").state, books.job("big").state) == ("Placed", "Queued")
