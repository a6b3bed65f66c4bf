"""1.2.7: who gets what of the fleet, and how much of it is left in whole nodes."""

import pytest
import yaml

from jobs.core.policies.weights import Weights
from jobs.services.scheduling import loop
from tests.jobs.core.placement.cast import NOON, fleet, gang, node, workers
from tests.support import books
from tests.support.quotas import GPU, apply_tree, gpus, leaf
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db


def test_1_2_7_of_equal_jobs_of_two_users_no_one_has_more_than_a_gang_more_than_the_other():
    apply_tree(leaf("ada", **gpus(0, 64)), leaf("sam", **gpus(0, 64)))
    cluster = books.a_cluster(gpus=2)
    for user in ("ada", "sam"):
        jobs = [yaml.safe_load(pytorch_job(f"{user}-{i}", workers=1)) for i in range(8)]
        for job in jobs:
            job["metadata"]["labels"] = {"quota.scheduling.alibabacloud.com/name": user}
        books.apply(*map(yaml.safe_dump, jobs))
    for room in range(4, 34, 2):
        node = cluster.nodes.get()
        cluster.nodes.update(allocatable={**node.allocatable, GPU: room})
        loop._idle_caches.clear()
        books.cycle()
        used = [books.used(f"root/{user}")[GPU] for user in ("ada", "sam")]
        assert sum(used) == room and abs(used[0] - used[1]) <= 2


def test_1_2_7_binpack_leaves_fewer_nodes_partly_used_than_spread():
    def partly_used(weights: Weights) -> int:
        engine = fleet({name: [node(f"{name}-{i}") for i in range(4)] for name in ("north", "south", "west")})
        for job in range(9):
            engine.bind(job, engine.find(gang(), workers(3), NOON, weights))
        free = [
            b.state.free[engine.fleet.states.index[GPU]] for s in engine.fleet.sites.values() for b in s.where.values()
        ]
        return sum(0 < each < 8 for each in free)

    pack, spread = Weights(pack=1, spread=0), Weights(pack=0, spread=1)
    assert partly_used(pack) < partly_used(spread)
