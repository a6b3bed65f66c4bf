"""A gang that runs on north, and what the watcher says of north."""

from django.utils import timezone

from fleet.core.members import health as cluster_health
from fleet.core.members.health import Health
from fleet.models import Cluster
from jobs.models import Job, Work
from jobs.services.scheduling import loop
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import GPU, team
from tests.support.world import POLICY, pytorch_job

WHOLE = {"cpu": 10**5, "memory": "900000Gi", GPU: 9, "kube-queue/max-jobs": 1000}

QUEUED = """  suspension: {scheduling: true}
  failover: {application: {decisionConditions: {tolerationSeconds: 5}}}
  propagateDeps: true"""

THROUGH_QUEUE = POLICY.replace("  propagateDeps: true", QUEUED)


def a_fleet() -> None:
    books.a_cluster("north", gpus=3)
    a, b = team("a", 0, 9, namespaces=["default"]), team("b", 9, 9, namespaces=["vision"])
    trees.apply(manifest(quota("root", WHOLE, WHOLE, a, b)), by="system", now=timezone.now())


def running(policy: str = THROUGH_QUEUE) -> Job:
    """A gang of three GPUs that fills north, where it runs."""
    a_fleet()
    books.apply(policy, pytorch_job("llama"))
    cycle()
    Work.objects.update(state=Work.State.APPLIED, applied_at=timezone.now())
    books.report("llama", "Running")
    assert books.job("llama").state == "Running"
    return books.job("llama")


def north(state: Cluster.State) -> None:
    row = Cluster.objects.get(name="north")
    row.state = state
    now = timezone.now()
    row.taints = cluster_health.taints(row.taints, Health(cluster_health.State(state), "", "", now), now)
    row.save(update_fields=["state", "taints"])


def cycle() -> int:
    """One that reads everything anew: these tests change rows without a line in the journal."""
    loop._idle_caches.clear()
    return loop.run(timezone.now)
