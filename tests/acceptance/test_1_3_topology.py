"""1.3: GPU topology: gangs near each other, and what is told when they cannot be."""

import pytest

from fleet.kube.resources import NODES
from fleet.models import Node, Pod
from tests.acceptance.builders import LINKED, POLICY, VISIBLE, by_links, gpus_of, label, linked, mpi_job, near, occupied
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
RACK = "topology.kubernetes.io/rack"


def wired(world, name: str, racks: str, gpus: int = 2) -> None:
    """A member with a node of so many GPUs for each letter, which names its rack; node i is ``<name>-pool<i>-0``."""
    world.member(name, *(gpus for _ in racks))
    for i, rack in enumerate(racks):
        world.clients[name].merge_patch(NODES.path(name=f"{name}-pool{i}-0"), {"metadata": {"labels": {RACK: rack}}})
    known = Node.objects.filter(cluster__name=name)
    world.until(lambda: all(RACK in node.labels for node in known.all()), "the racks are known")


def racks_of(world, name: str) -> list[str]:
    """Of the workers' nodes, in the order of ranks."""
    job = world.job(name)
    pods = Pod.objects.filter(job_uid=job.uid, role="worker").exclude(node="").order_by("index")
    return [Node.objects.get(name=pod.node).labels[RACK] for pod in pods]


def test_1_3_6_a_gang_no_node_holds_takes_the_nodes_whose_ring_leaves_a_switch_least(world):
    wired(world, "north", "abcab")
    world.apply(POLICY, mpi_job(workers=8))
    world.expect("vgg16", "Running")
    world.until(lambda: len(racks_of(world, "vgg16")) == 8, "all workers are bound")
    assert racks_of(world, "vgg16") in (list("aaaabbbb"), list("bbbbaaaa"))


def test_1_3_6_a_preference_that_cannot_be_met_is_passed_over_with_an_event(world):
    wired(world, "north", "abc")
    world.apply(POLICY, near(mpi_job(workers=4), topology="preferred"))
    world.expect("vgg16", "Running")
    [told] = [message for reason, message in world.events("vgg16") if reason == "TopologyNotMet"]
    assert told == "no asw of north holds it whole: it goes over 2 access switches, its ring leaves one 2 times"


def test_1_3_6_a_required_topology_waits_whole_and_says_what_the_best_switch_lacks(world):
    wired(world, "north", "abc")
    world.apply(POLICY, near(mpi_job(workers=4), topology="required", topology_level="asw"))
    world.until(lambda: (world.job("vgg16").reason or {}).get("code") == "NoClusterFits", "the reason is written")
    [verdict] = world.job("vgg16").reason["clusters"]
    assert verdict["short"] == {"nvidia.com/gpu": 2} and "no asw alone" in verdict["message"]
    assert world.pods("north") == []


def test_1_3_6_a_required_topology_is_kept_by_the_members_own_scheduler(world):
    wired(world, "north", "abcb")
    world.apply(POLICY, near(mpi_job(workers=4), topology="required", topology_level="asw"))
    world.expect("vgg16", "Running")
    world.until(lambda: len(racks_of(world, "vgg16")) == 4, "all workers are bound")
    assert racks_of(world, "vgg16") == ["b"] * 4
    [worker] = {str(pod["spec"]["nodeSelector"]) for pod in world.pods("north")}
    assert worker == str({RACK: "b"})


def test_1_3_1_a_topology_node_offers_its_gpus_by_their_links_alone_until_its_label_is_restored(world, convoy):
    world.member("north", 4)
    node, switch = "north-pool0-0", "ack.node.gpu.schedule"
    label(world, "north", node, nvidia_com__gpu_product="Tesla-V100-SXM2-16GB")

    def offered() -> dict[str, int]:
        return {name: amount for name, amount in Node.objects.get().allocatable.items() if name.endswith("/gpu")}

    assert convoy("label", "node", node, f"{switch}=topology").out == f"node/{node} labeled\n"
    world.until(lambda: offered() == {LINKED: 4}, "it offers its GPUs by their links alone")
    refused = convoy("label", "node", node, f"{switch}=default")
    assert refused.code != 0 and "is 'topology' already" in refused.err
    assert convoy("label", "node", node, f"{switch}=default", "--overwrite").code == 0
    world.until(lambda: offered() == {"nvidia.com/gpu": 4}, "it offers them plainly again")


def test_1_3_4_of_six_free_gpus_the_fast_quad_is_chosen_and_not_the_first_four(world):
    linked(world, "north", 8)
    occupied(world, "north", "2,3")
    world.apply(POLICY, by_links(mpi_job(workers=4)))
    world.expect("vgg16", "Running")
    world.until(lambda: all(gpus_of(world, "north", "vgg16")), "every worker has its GPU")
    assert sorted(gpus_of(world, "north", "vgg16")) == ["4", "5", "6", "7"]
    placement = world.job("vgg16").binding.placement
    assert placement["gpus"] == {"north-pool0-0": [4, 5, 6, 7]} and placement["ring_gbs"] == 80


def test_1_3_9_each_container_is_told_its_own_gpu_and_those_of_its_gang(world):
    linked(world, "north", 8)
    world.apply(POLICY, by_links(mpi_job(workers=4)))
    world.expect("vgg16", "Running")
    world.until(lambda: all(gpus_of(world, "north", "vgg16")), "every worker has its GPU")
    assert gpus_of(world, "north", "vgg16", VISIBLE) == ["0,1,2,3"] * 4
    assert sorted(gpus_of(world, "north", "vgg16")) == ["0", "1", "2", "3"]


def test_1_3_11_a_pytorch_job_gets_the_fast_quad_as_an_mpi_job_does(world):
    linked(world, "north", 8)
    occupied(world, "north", "2,3")
    world.apply(POLICY, by_links(pytorch_job("bert", workers=3, duration="1h")))
    world.expect("bert", "Running")
    world.until(lambda: all(gpus_of(world, "north", "bert")), "every worker has its GPU")
    assert world.job("bert").binding.placement["gpus"] == {"north-pool0-0": [4, 5, 6, 7]}
    assert set(gpus_of(world, "north", "bert")) < {"4", "5", "6", "7"}
