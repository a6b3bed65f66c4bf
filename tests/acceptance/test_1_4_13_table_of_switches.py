"""1.4.13: the ConfigMap of ``asw psw ip`` lines, as the seed gives it: ten nodes under four access switches."""

import pytest
import yaml

from fleet.kube.resources import CONFIG_MAPS
from fleet.member.errors import MemberMissing
from fleet.models import Node, Pod
from jobs.kinds import ranks
from tests.acceptance.builders import POLICY, mpi_job, near

pytestmark = pytest.mark.django_db(transaction=True)


def table(world, name: str) -> dict[str, str]:
    """Applies a table in which node i is under switch i modulo 4; returns the switch of each node."""
    nodes = sorted(
        Node.objects.filter(cluster__name=name), key=lambda node: int(node.name.split("pool")[1].split("-")[0])
    )
    lines = [f"asw-{i % 4} psw-0 {node.address}" for i, node in enumerate(nodes)]
    metadata = {"name": "node-topology-config", "namespace": "kube-system"}
    world.apply(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": metadata,
                "data": {"topology_config": "\n".join(lines)},
            }
        )
    )
    return {node.name: f"asw-{i % 4}" for i, node in enumerate(nodes)}


def switches_of(world, name: str, switch: dict[str, str]) -> list[str]:
    pods = Pod.objects.filter(job_uid=world.job(name).uid, role="worker").exclude(node="").order_by("index")
    return [switch[pod.node] for pod in pods]


def test_1_4_13_ranks_of_nodes_under_one_access_switch_are_consecutive(world, as_admin):
    world.member("north", *[1] * 10)
    switch = table(world, "north")
    world.apply(POLICY, mpi_job(workers=10))
    job = world.expect("vgg16", "Running")
    world.until(lambda: len(switches_of(world, "vgg16", switch)) == 10, "all workers are bound")
    ranks = switches_of(world, "vgg16", switch)
    assert len([i for i in range(10) if ranks[i] != ranks[i - 1]]) == 4
    placement = as_admin.get(f"/api/v1/jobs/{job.uid}/").json()["placement"]
    assert [switch[run["node"]] for run in placement["nodes"]["worker"]] == ranks
    assert (placement["switches"], placement["crossings"], placement["shared"]) == (4, 4, {"psw": "psw-0"})


def test_1_4_13_a_required_switch_of_the_table_is_kept_by_the_names_of_its_nodes(world):
    world.member("north", *[1] * 10)
    switch = table(world, "north")
    world.apply(POLICY, near(mpi_job(workers=3), topology="required", topology_level="asw"))
    world.expect("vgg16", "Running")
    world.until(lambda: len(switches_of(world, "vgg16", switch)) == 3, "all workers are bound")
    [name] = set(switches_of(world, "vgg16", switch))
    [affinity] = {str(pod["spec"]["affinity"]) for pod in world.pods("north")}
    assert all(node in affinity for node, under in switch.items() if under == name)


def test_1_4_13_a_list_of_ranks_too_long_for_every_pod_is_a_configmap_that_leaves_with_the_job(world, monkeypatch):
    monkeypatch.setattr(ranks, "LONGEST", 20)
    world.member("north", *[1] * 10)
    switch = table(world, "north")
    world.apply(POLICY, mpi_job(workers=10))
    world.expect("vgg16", "Running")
    client, path = world.clients["north"], CONFIG_MAPS.path("default", "vgg16-convoy-ranks")
    listed = client.get(path)["data"]["worker"].split()
    assert len(listed) == 10 and len([i for i in range(10) if switch[listed[i]] != switch[listed[i - 1]]]) == 4
    world.delete("vgg16")

    def is_gone() -> bool:
        try:
            client.get(path)
        except MemberMissing:
            return True
        return False

    world.until(is_gone, "the list has left with the job")
