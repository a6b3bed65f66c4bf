"""A share of a divided job whose copy the agent in its member has stopped leaves alone, and its part is done elsewhere."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.core.members import fence
from fleet.models import Cluster, MemberAgent
from jobs.core.policies.unreachable import UNREACHABLE
from jobs.models import Job, Work
from jobs.services.failover import returns
from jobs.services.follow.timeouts import fenced, health
from jobs.services.scheduling import loop
from jobs.services.submission import manifests, submit
from tests.support.books import a_cluster
from tests.support.division import SPREAD, sweep_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def job() -> Job:
    """Attempt 1 on north, 2 on south; both are fenced, and east has room for another share."""
    policy = yaml.safe_load(SPREAD)
    policy["metadata"]["annotations"] = {UNREACHABLE: "Fence"}
    for name, gpus in (("north", 5), ("south", 3), ("east", 2)):
        a_cluster(name, gpus=gpus)
    text = f"{yaml.safe_dump(policy)}\n---\n{sweep_job(pods=6)}"
    submit.apply(manifests.parse(text.encode()), by="test", now=timezone.now())
    assert loop.run(timezone.now) == 1
    Work.objects.update(state=Work.State.APPLIED, fenced=True, applied_at=timezone.now())
    return Job.objects.get()


def shares() -> dict[int, str]:
    return {share["attempt"]: share["state"] for share in Job.objects.get().shares}


def test_it_leaves_alone_and_its_copy_is_removed(job):
    work = Work.objects.get(attempt=2)
    stopped = {"metadata": {"annotations": {fence.STOPPED: "2026-01-01T00:00:00+00:00"}}}
    for _ in range(2):
        fenced.note(work.cluster_id, [((job.uid, 2), stopped), ((job.uid, 1), {"metadata": {}})], timezone.now())
    assert health.check(timezone.now()) == 1 and health.check(timezone.now()) == 0
    assert shares() == {1: "Placed", 2: "Lost"} and Job.objects.get().state == "Moving"
    states = dict(Work.objects.values_list("attempt", "state"))
    assert states == {1: "Applied", 2: "Withdrawing"}


def test_each_share_waits_for_the_agent_of_its_own_cluster(job):
    now = timezone.now()
    Cluster.objects.update(state=Cluster.State.UNKNOWN)
    for cluster in Cluster.objects.all():
        taint = {"key": "cluster.karmada.io/unreachable", "effect": "NoExecute", "timeAdded": now.isoformat()}
        Cluster.objects.filter(pk=cluster.pk).update(taints=[taint])
    north, south = (Cluster.objects.get(name=name) for name in ("north", "south"))
    MemberAgent.objects.create(
        cluster=south, duration_s=120, renewed_at=now, seen_at=now, until=now + timedelta(seconds=120)
    )
    assert returns.leaves_at(job, north) is None
    assert returns.leaves_at(job, south) == now + timedelta(seconds=120 + 60 + 30 + 30)
