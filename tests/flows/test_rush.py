"""Two watchers, two schedulers, two pushers, the sweep, an admin and users at once: nothing breaks, nothing is left over."""

from collections import Counter

import pytest
from django.db import connection
from django.utils import timezone

from jobs.models import Job
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support.books import GPU, team
from tests.support.rush import Rush
from tests.support.world import POLICY, World, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
JOBS, PATIENCE_S = 200, 300
ENOUGH = 60 if connection.vendor == "postgresql" else 15
"""Jobs that have to succeed meanwhile: SQLite has one writer, so most of the time goes into turns."""
CLUSTERS = ("north", "south", "west")
FAILOVER = POLICY.replace(
    "  propagateDeps: true",
    """  propagateDeps: true
  failover: {application: {decisionConditions: {tolerationSeconds: 1}, purgeMode: Graciously}}""",
)


@pytest.fixture
def members(tmp_path):
    world = World(tmp_path)
    for name in CLUSTERS:
        world.still(name, 0)
    yield world
    for member in world.members.values():
        member.stop()


def test_it_brings_jobs_to_their_end_with_two_of_each_process_and_nothing_breaks(members):
    total = {"cpu": 10**6, "memory": "900000Gi", GPU: 60, "kube-queue/max-jobs": 1000}
    tree = quota("root", total, total, team("a", 0, 60, namespaces=["default"]))
    trees.apply(manifest(tree), by="system", now=timezone.now())
    members.apply(FAILOVER, *(pytorch_job(f"job-{n:03}", workers=0) for n in range(JOBS)))
    rush = Rush(seed=16)
    ended = rush.run(lambda: Job.objects.filter(state=Job.State.SUCCEEDED).count() >= ENOUGH, PATIENCE_S)
    assert rush.broken == []
    assert ended, (rush.steps, Counter(Job.objects.values_list("state", flat=True)))
    assert set(rush.steps) == {"_schedule", "_push", "_watch", "_check", "_edit", "_use"}
