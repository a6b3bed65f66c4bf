"""One job over several clusters, through the real doors: shares, status, failover of one share, quota, the end."""

import pytest

from fleet.models import Cluster, Hold
from jobs.models import Attempt, Job, Work
from tests.support.division import BY_ROOM, DIVIDED, copies, sweep_job
from tests.support.world import World

pytestmark = pytest.mark.django_db(transaction=True)

AGGREGATED = DIVIDED % "replicaDivisionPreference: Aggregated"


def shares(name: str = "sweep") -> dict[str, int]:
    live = [share for share in Job.objects.get(name=name).shares if share["state"] != "Lost"]
    return {share["cluster"]: share["replicas"] for share in live}


def test_it_runs_a_job_on_two_clusters_and_ends_when_both_shares_have(world: World):
    world.member("north", 5)
    world.member("south", 2)
    world.apply(BY_ROOM, sweep_job(pods=6, completions=9, duration="10h"))
    world.until(lambda: world.job("sweep").state == "Running", "both shares run")
    assert shares() == {"north": 4, "south": 2}
    assert copies(world) == {"north": [(4, 6)], "south": [(2, 3)]}
    finish_all(world)
    job = world.job("sweep")
    assert job.status["succeeded"] == 9
    assert set(Attempt.objects.values_list("outcome", flat=True)) == {"Succeeded"}
    assert not Hold.objects.filter(released_at__isnull=True).exists()


def test_it_moves_only_the_share_of_a_cluster_that_is_lost(world: World):
    world.member("north", 5)
    world.member("south", 2, time_scale=1.0)
    world.apply(BY_ROOM, sweep_job(pods=6, duration="10h"))
    world.until(lambda: world.job("sweep").state == "Running", "both shares run")
    kept = Work.objects.get(cluster__name="north")
    world.member("east", 2)
    world.members["south"].faults.away = True
    world.until(lambda: shares() == {"north": 4, "east": 2}, "the share of south goes to east")
    world.until(lambda: world.job("sweep").state == "Running", "all shares run again")
    assert Work.objects.get(pk=kept.pk).state == "Applied"
    assert copies(world, "north") == {"north": [(4, None)]}
    assert Attempt.objects.get(cluster_name="south").outcome == "Lost"
    world.members["south"].faults.away = False
    world.until(lambda: copies(world, "south") == {"south": []}, "the copy that came back is removed")
    assert shares() == {"north": 4, "east": 2} and world.job("sweep").state == "Running"


def test_it_says_what_is_missing_and_goes_on_when_there_is_room(world: World):
    world.member("north", 5)
    world.apply(AGGREGATED, sweep_job(pods=6))
    reason = lambda: (world.job("sweep").reason or {}).get("message", "")  # noqa: E731
    world.until(lambda: "north has room for 5 of 6 pods" in reason(), "the reason names the room")
    world.member("south", 2)
    world.until(lambda: world.job("sweep").state == "Running", "both shares run")
    assert shares() == {"north": 4, "south": 2}


def test_it_never_divides_an_indexed_job(world: World):
    world.member("north", 5)
    world.member("south", 4)
    world.apply(AGGREGATED, sweep_job(pods=6, completions=6, completionMode="Indexed"))
    world.until(lambda: (world.job("sweep").reason or {}).get("code") == "NoClusterFits", "it waits for one cluster")
    assert world.job("sweep").shares == []


def test_it_removes_every_share_of_a_job_that_is_deleted(world: World):
    world.member("north", 5)
    world.member("south", 2)
    world.apply(BY_ROOM, sweep_job(pods=6, duration="10h"))
    world.until(lambda: world.job("sweep").state == "Running", "both shares run")
    world.delete("sweep")
    world.until(lambda: not Job.objects.exists(), "the job is gone")
    assert copies(world) == {"north": [], "south": []}
    assert not Hold.objects.filter(released_at__isnull=True).exists()


def test_it_suspends_every_share_and_starts_afresh(world: World):
    world.member("north", 5)
    world.member("south", 2)
    world.apply(BY_ROOM, sweep_job(pods=6, duration="10h"))
    world.until(lambda: world.job("sweep").state == "Running", "both shares run")
    world.suspend("sweep")
    world.until(lambda: set(Work.objects.values_list("state", flat=True)) == {"Suspended"}, "both are suspended")
    world.resume("sweep")
    world.until(lambda: world.job("sweep").state == "Running", "both shares run again")
    assert [share["attempt"] for share in world.job("sweep").shares] == [3, 4]


def finish_all(world: World) -> None:
    """Of each share, one wave of pods after the other."""

    def has_ended() -> bool:
        world.finish("sweep")
        return world.job("sweep").state == "Succeeded"

    world.until(has_ended, "both shares have succeeded")


def two_shares(world: World, **fields) -> None:
    """4 pods on north and 2 on south, all running; time passes slowly on south."""
    world.member("north", 5)
    world.member("south", 2, time_scale=1.0)
    world.apply(BY_ROOM, sweep_job(pods=6, duration="10h", **fields))
    world.until(lambda: world.job("sweep").state == "Running", "both shares run")


def away(world: World, name: str) -> None:
    world.members[name].faults.away = True
    world.until(lambda: Cluster.objects.get(name=name).state == Cluster.State.UNKNOWN, f"{name} is unknown")


def back(world: World, name: str) -> None:
    world.members[name].faults.away = False


def test_it_deletes_a_job_of_which_one_member_does_not_answer_once_that_is_back(world: World):
    two_shares(world)
    away(world, "south")
    world.delete("sweep")
    world.until(lambda: copies(world, "north") == {"north": []}, "the share that can be removed is")
    assert Job.objects.get().deleting_at and Work.objects.get(cluster__name="south").state == "Withdrawing"
    back(world, "south")
    world.until(lambda: not Job.objects.exists(), "the job is gone")
    assert copies(world, "south") == {"south": []}
    assert not Hold.objects.filter(released_at__isnull=True).exists()


def test_it_runs_once_after_a_suspension_that_one_member_did_not_hear_of(world: World):
    two_shares(world)
    away(world, "south")
    world.suspend("sweep")
    world.until(lambda: Work.objects.get(cluster__name="north").state == "Suspended", "north is suspended")
    world.member("east", 2)
    world.resume("sweep")
    world.until(lambda: world.job("sweep").state == "Running", "it runs without south")
    assert shares() == {"north": 4, "east": 2}
    back(world, "south")
    world.until(lambda: copies(world, "south") == {"south": []}, "the copy that south had kept is removed")
    assert shares() == {"north": 4, "east": 2} and world.job("sweep").state == "Running"
    assert copies(world, "north", "east") == {"north": [(4, None)], "east": [(2, None)]}


def test_it_does_not_run_a_share_again_that_succeeded_where_a_suspension_was_not_heard_of(world: World):
    two_shares(world, completions=6)
    away(world, "south")
    world.finish("sweep", on="north")
    world.until(lambda: world.job("sweep").shares[0]["state"] == "Succeeded", "the share of north has succeeded")
    world.suspend("sweep")
    world.finish("sweep", on="south")
    world.until(
        lambda: all(pod["status"]["phase"] == "Succeeded" for pod in world.stored_pods("south")), "south is done"
    )
    back(world, "south")
    assert world.expect("sweep", "Succeeded").status["succeeded"] == 6
    assert set(Attempt.objects.values_list("outcome", flat=True)) == {"Succeeded"}
