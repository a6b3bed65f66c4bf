"""1.2.7: who gets what of the fleet, and how much of it is left in whole nodes."""

import pytest
import yaml

from fleet.models import Cluster, Hold
from jobs.models import Job
from jobs.services.scheduling import loop
from tests.support import books
from tests.support.quotas import GPU, apply_tree, gpus, leaf
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db
PARTS = ("size", "pack", "fragments", "spread", "topology", "cost", "reliability", "data")


def of_user(user: str, i: int) -> str:
    job = yaml.safe_load(pytorch_job(f"{user}-{i}", workers=1))
    job["metadata"]["labels"] = {"quota.scheduling.alibabacloud.com/name": user}
    return yaml.safe_dump(job)


def test_1_2_7_of_equal_jobs_of_two_users_no_one_has_more_than_a_gang_more_than_the_other():
    """Over three clusters, which get room in turn; the first user submits everything before the second."""
    apply_tree(leaf("ada", **gpus(0, 64)), leaf("sam", **gpus(0, 64)))
    clusters = [books.a_cluster(name, gpus=0) for name in ("north", "south", "west")]
    for user in ("ada", "sam"):
        books.apply(*(of_user(user, i) for i in range(12)))
    for step in range(15):
        node = clusters[step % 3].nodes.get()
        node.allocatable[GPU] += 2
        node.save(update_fields=["allocatable"])
        loop._idle_caches.clear()
        books.cycle()
        used = [books.used(f"root/{user}").get(GPU, 0) for user in ("ada", "sam")]
        assert sum(used) == 2 * (step + 1) and abs(used[0] - used[1]) <= 2
    assert {job.cluster.name for job in Job.objects.exclude(cluster=None)} == {"north", "south", "west"}


def test_1_2_7_binpack_leaves_fewer_nodes_partly_used_than_spread():
    """As a policy states it, over three clusters of four nodes with 8 GPUs each."""

    def partly_used(part: str) -> int:
        Job.objects.all().delete()
        Hold.objects.all().delete()
        loop._idle_caches.clear()
        weights = ",".join(f"{name}={int(name == part)}" for name in PARTS)
        policy = books.annotated("convoy.dev/score-weights", weights, POLICY)
        books.apply(policy, *(pytorch_job(f"{part}-{i}", workers=0, gpus=3) for i in range(9)))
        assert books.cycle() == 9
        used = [name for hold in Hold.objects.all() for amounts, names in hold.nodes for name in names]
        taken = {node: 3 * used.count(node) for node in used}
        return sum(0 < amount < 8 for amount in taken.values())

    for name in ("north", "south", "west"):
        cluster: Cluster = books.a_cluster(name, gpus=8)
        node = cluster.nodes.get()
        for i in range(1, 4):
            cluster.nodes.create(name=f"node-{i}", ready=True, allocatable=node.allocatable)
        for node in cluster.nodes.all():
            cluster.nodes.filter(pk=node.pk).update(name=f"{name}-{node.name}")
    assert partly_used("pack") < partly_used("spread")
