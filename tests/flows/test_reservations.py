"""Clusters that hold the capacity themselves before a job is sent: all of the gang, or nothing and another cluster."""

from dataclasses import replace

import pytest
from django.utils import timezone

from fleet.errors import InvalidInput
from fleet.kube.resources import RESERVATIONS
from fleet.models import Cluster
from fleet.services.clusters import clusters
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
SERVED = {"reservations.scheduling.koordinator.sh": "v1alpha1"}
NORTH_FIRST = POLICY.replace(
    "placement: {", "placement: {clusterAffinities: [{clusterNames: [north]}, {clusterNames: [south]}], "
)
LABELS = {"convoy.dev/fit": "Reservation"}
HALF = "1 of 2 reservations are available"


def reserving(world, name: str, *nodes: int, **options):
    made = world.member(name, *nodes, serves=SERVED, **options)
    label(name)
    return made


def label(name: str) -> None:
    clusters.set_labels(Cluster.objects.get(name=name), LABELS, by="test", now=timezone.now())


def held(world, name: str) -> list[tuple[str, str]]:
    found = world.clients[name].list(RESERVATIONS.path())["items"]
    return sorted((each["metadata"]["name"], each.get("status", {}).get("phase", "Pending")) for each in found)


def kept_by_others(world, name: str, gpus: int) -> None:
    """What the fleet does not count, and the member does."""
    container = {"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    spec = {"template": {"spec": {"containers": [container]}}, "owners": [], "ttl": "24h"}
    body = {"apiVersion": RESERVATIONS.api_version, "kind": RESERVATIONS.kind, "metadata": {"name": "theirs"}}
    world.clients[name].create(RESERVATIONS.path(), {**body, "spec": spec})
    world.until(lambda: held(world, name) == [("theirs", "Available")], "it is kept")


def one_has_room(world) -> bool:
    """Beside what others keep."""
    return [phase for _, phase in held(world, "north")].count("Available") == 2


def test_the_pods_of_a_job_take_what_was_held_for_them_one_by_one(world):
    reserving(world, "north", 2, 2)
    world.apply(POLICY, pytorch_job("llama", duration="10h"))
    world.expect("llama", "Running", on="north")
    world.until(lambda: [phase for _, phase in held(world, "north")] == ["Succeeded"] * 3, "each is taken")
    nodes = {each["status"]["nodeName"] for each in world.clients["north"].list(RESERVATIONS.path())["items"]}
    assert {pod["spec"]["nodeName"] for pod in world.pods("north")} == nodes


def test_a_gang_that_the_member_cannot_hold_whole_holds_nothing_and_goes_to_the_next(world, settings):
    settings.CONVOY_DISPATCH = replace(settings.CONVOY_DISPATCH, reservation_wait_s=3600)
    reserving(world, "north", 2, 2)
    world.member("south", 2, 2)
    kept_by_others(world, "north", 2)
    world.apply(NORTH_FIRST, pytorch_job("llama", workers=1, gpus=2, duration="10h"))
    world.until(lambda: HALF in str(world.job("llama").reason), "one pod has its room, and the fleet knows")
    settings.CONVOY_DISPATCH = replace(settings.CONVOY_DISPATCH, reservation_wait_s=0)
    world.expect("llama", "Running", on="south")
    assert any(HALF in told for _, told in world.events("llama"))
    world.until(lambda: held(world, "north") == [("theirs", "Available")], "nothing of it stays held")
    assert world.pods("north") == []


def test_a_job_that_is_deleted_while_its_room_is_made_leaves_nothing_held(world):
    reserving(world, "north", 2, 2)
    kept_by_others(world, "north", 2)
    world.apply(POLICY, pytorch_job("llama", workers=1, gpus=2, duration="10h"))
    world.until(lambda: one_has_room(world), "one pod has its room")
    world.delete("llama")
    world.until(lambda: held(world, "north") == [("theirs", "Available")], "nothing of it stays held")


def test_it_is_refused_where_the_cluster_cannot_hold_reservations(world):
    world.member("plain", 1)
    with pytest.raises(InvalidInput, match="does not serve scheduling.koordinator.sh/v1alpha1 Reservation"):
        label("plain")
    with pytest.raises(InvalidInput, match="takes 1.28 or later"):
        reserving(world, "old", 1, version="v1.20.2")


def test_what_a_lost_member_holds_ends_there_by_itself_and_the_job_runs_elsewhere(world, settings):
    settings.CONVOY_DISPATCH = replace(settings.CONVOY_DISPATCH, reservation_ttl_s=600)
    north = reserving(world, "north", 2, 2)
    world.member("south", 2, 2)
    kept_by_others(world, "north", 2)
    moves = "  failover: {application: {decisionConditions: {tolerationSeconds: 1}, purgeMode: Immediately}}\n"
    policy = NORTH_FIRST.replace("  placement", f"{moves}  placement", 1)
    world.apply(policy, pytorch_job("llama", workers=1, gpus=2, duration="10h"))
    world.until(lambda: one_has_room(world), "one pod has its room")
    north.faults.away = True
    world.expect("llama", "Running", on="south")
    north.faults.away = False
    world.until(lambda: held(world, "north") == [("theirs", "Available")], "nothing of it stays held")
    assert world.job("llama").attempt == 2


def test_room_that_nobody_takes_is_given_back_when_its_time_is_over(world):
    reserving(world, "north", 2)
    path = RESERVATIONS.path(name="theirs")
    kept_by_others(world, "north", 2)
    world.clients["north"].merge_patch(path, {"spec": {"ttl": "1s"}})
    world.until(lambda: held(world, "north") == [("theirs", "Failed")], "it has ended")
    world.apply(POLICY, pytorch_job("llama", workers=0, gpus=2, duration="10h"))
    world.expect("llama", "Running", on="north")


def test_where_nobody_says_how_it_is_held_by_members_that_are_certain_to_and_fitted_by_the_fleet_elsewhere(world):
    world.member("north", 4, serves=SERVED, scheduler="koord-scheduler:v1.6.0")
    world.apply(POLICY, pytorch_job("held", duration="10h"))
    world.expect("held", "Running", on="north")
    world.until(lambda: [phase for _, phase in held(world, "north")] == ["Succeeded"] * 3, "each is taken")
    assert {pod["spec"].get("schedulerName") for pod in pods_of(world, "held")} == {"koord-scheduler"}
    world.member("south", 8, serves=SERVED)
    world.apply(pytorch_job("fitted", duration="10h", workers=4))
    world.expect("fitted", "Running", on="south")
    assert held(world, "south") == []


def pods_of(world, job: str) -> list[dict]:
    return [pod for pod in world.pods("north") if pod["metadata"]["name"].startswith(f"{job}-")]


def test_a_policy_that_wants_reservations_passes_over_members_that_cannot_hold_them_and_says_why(world):
    world.member("old", 8, serves=SERVED, scheduler="kube-scheduler:v1.31.0-aliyun.6.5.4.fcac2bdf")
    world.member("plain", 8)
    policy = POLICY.replace(
        "{name: example-policy}", '{name: example-policy, annotations: {"convoy.dev/fit": Reservation}}'
    )
    world.apply(policy, pytorch_job("llama", duration="10h"))
    world.until(lambda: (world.job("llama").reason or {}).get("code") == "NoClusterFits", "it is told")
    told = {each["cluster"]: (each["code"], each["message"]) for each in world.job("llama").reason["clusters"]}
    assert {code for code, _ in told.values()} == {"CannotReserve"}
    assert "runs scheduler 6.5.4: holding reservations takes 6.8.0 or later" in told["old"][1]
    assert "does not serve scheduling.koordinator.sh/v1alpha1 Reservation" in told["plain"][1]
    world.member("north", 4, serves=SERVED)
    world.expect("llama", "Running", on="north")
    assert len(held(world, "north")) == 3
