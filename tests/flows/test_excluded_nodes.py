"""A pod that is made anew within a running attempt does not land on a node that was excluded after its job was sent."""

import pytest
from django.utils import timezone

from fleet.core.node_exclusions import ExclusionReason
from fleet.services.clusters import node_exclusions
from fleet.services.clusters.node_exclusions import Fault
from jobs.models import Work
from tests.jobs.services.resizing import elastic
from tests.support.world import POLICY

pytestmark = pytest.mark.django_db(transaction=True)


def workers(world) -> dict[str, str]:
    """The node of each worker that runs, by the pod's uid."""
    pods = [pod for pod in world.pods("north") if pod["status"].get("phase") == "Running"]
    return {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in pods}


def test_a_worker_that_its_operator_replaces_leaves_the_excluded_node_and_the_others_stay(world):
    world.member("north", 4, 4)
    world.apply(POLICY, elastic("llama", 2))
    world.expect("llama", "Running")
    world.until(lambda: len(workers(world)) == 2, "both workers run")
    before = workers(world)
    bad = next(iter(before.values()))
    cluster = world.job("llama").cluster
    fault = Fault("k", timezone.now(), ExclusionReason.NODE_PROBLEM, "GpuUnhealthy")
    node_exclusions.report(cluster, bad, fault, fault.at)
    world.until(lambda: Work.objects.filter(resize_wanted=1, resize_done=1).exists(), "the copy follows")
    assert workers(world) == before, "pods that run are not touched"
    for pod in world.pods("north"):
        if pod["spec"].get("nodeName") == bad:
            world.clients["north"].delete(f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}")
    left = {uid: node for uid, node in before.items() if node != bad}

    def replaced() -> bool:
        now = workers(world)
        return len(now) == 2 and now.items() >= left.items() and not now.keys() & (before.keys() - left.keys())

    world.until(replaced, "what was deleted runs again", patience_s=90)
    assert bad not in workers(world).values()
    assert world.job("llama").attempt == 1
