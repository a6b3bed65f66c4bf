"""The shares of a divided job in the rows and at the doors: placed, told, failed, moved, regained; without any member."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import Cluster, Hold
from jobs.core.failover.rules import Outcome, PurgeMode
from jobs.kubeapi.decisions import Bindings
from jobs.models import Attempt, Job, Work
from jobs.services.failover import division
from jobs.services.follow import division_status, sweep
from jobs.services.scheduling import loop
from jobs.services.submission import manifests, submit
from tests.support.books import a_cluster
from tests.support.division import BY_ROOM, FAILED, LOST, NO_FAILOVER, SPREAD, report_share, sweep_job

pytestmark = pytest.mark.django_db

DONE = {"conditions": [{"type": "Complete", "status": "True"}], "completionTime": "2026-01-01T12:00:00Z"}


def apply(*texts: str) -> None:
    submit.apply(manifests.parse("\n---\n".join(texts).encode()), by="test", now=timezone.now())


def divided(policy: str = SPREAD, **fields) -> Job:
    """On north with 4 pods (attempt 1) and on south with 2 (attempt 2); east has room for 2 and gets none."""
    for name, gpus in (("north", 5), ("south", 3), ("east", 2)):
        a_cluster(name, gpus=gpus)
    apply(policy, sweep_job(pods=6, **fields))
    assert loop.run(timezone.now) == 1
    return Job.objects.get()


def lose(attempt: int, **fields) -> Job:
    Work.objects.filter(attempt=attempt).update(state=Work.State.APPLIED)
    division.leave(Job.objects.get(), attempt, Outcome.LOST, LOST, timezone.now(), **fields)
    return Job.objects.get()


def brief(job: Job) -> list[tuple]:
    return [(s["attempt"], s["cluster"], s["replicas"], s["completions"], s["state"]) for s in job.shares]


def test_it_writes_an_attempt_a_hold_and_a_work_for_every_share():
    job = divided(completions=9)
    assert brief(job) == [(1, "north", 4, 6, "Placed"), (2, "south", 2, 3, "Placed")]
    assert (job.attempt, job.cluster.name, job.state) == (2, "north", "Placed")
    for rows, field in ((Attempt, "number"), (Hold, "attempt"), (Work, "attempt")):
        assert sorted(rows.objects.values_list(field, flat=True)) == [1, 2]
    assert {hold.attempt: (hold.pods, hold.amounts["nvidia.com/gpu"]) for hold in Hold.objects.all()} == {
        1: (4, 4),
        2: (2, 2),
    }


def test_it_shows_the_shares_in_the_binding_as_karmada_does():
    divided()
    shown = Bindings().render(Bindings().rows().get())
    assert shown["spec"]["clusters"] == [{"name": "north", "replicas": 4}, {"name": "south", "replicas": 2}]
    assert shown["status"]["result"] == "{north:4, south:2}"
    assert [each["clusterName"] for each in shown["status"]["aggregatedStatus"]] == ["north", "south"]


def test_it_tells_the_shares_over_rest_and_explains_them(as_admin):
    job = divided()
    shares = as_admin.get(f"/api/v1/jobs/{job.uid}/").json()["shares"]
    assert [(each["cluster"], each["replicas"], each["state"]) for each in shares] == [
        ("north", 4, "Placed"),
        ("south", 2, "Placed"),
    ]
    clusters = as_admin.get(f"/api/v1/jobs/{job.uid}/explain/").json()["clusters"]
    told = {each["cluster"]: (each["chosen"], each["message"]) for each in clusters}
    assert told["north"] == (True, "takes 4 of 6 pods, has room for 5")
    assert told["south"][0]


def test_it_has_a_timeline_with_every_share(as_admin):
    job = divided()
    report_share(1, {"active": 4}, running=4)
    lose(2)
    told = as_admin.get(f"/api/v1/jobs/{job.uid}/timeline/")
    assert told.status_code == 200
    assert {each["cluster"] for each in told.json()["slices"]} >= {"north", "south"}


def test_it_explains_how_much_room_there_is_for_one_that_waits(as_admin):
    a_cluster("north", gpus=5)
    apply(BY_ROOM, sweep_job(pods=6))
    loop.run(timezone.now)
    told = as_admin.get(f"/api/v1/jobs/{Job.objects.get().uid}/explain/").json()
    assert (told["outcome"], told["clusters"][0]["message"]) == ("Waits", "has room for 5 of 6 pods")


def test_it_runs_when_all_shares_run_and_adds_up_what_they_tell():
    divided()
    assert report_share(1, {"active": 4, "startTime": "2026-01-01T10:00:00Z"}, running=4).state == "Placed"
    job = report_share(2, {"active": 2, "startTime": "2026-01-01T09:00:00Z"}, running=2)
    assert job.state == "Running" and job.reason is None
    assert job.status == {"active": 6, "startTime": "2026-01-01T09:00:00Z"}


def test_it_has_succeeded_only_when_every_share_has():
    divided()
    assert report_share(1, {**DONE, "succeeded": 4}).state == "Placed"
    job = report_share(2, {**DONE, "succeeded": 2})
    assert (job.state, job.status["succeeded"], job.charge) == ("Succeeded", 6, None)
    assert not Hold.objects.filter(released_at__isnull=True).exists()


def test_it_fails_whole_without_a_failover_policy_and_stops_the_other_shares():
    divided(NO_FAILOVER)
    Work.objects.update(state=Work.State.APPLIED)
    job = report_share(1, FAILED)
    assert (job.state, job.reason["code"]) == ("Failed", "Failed")
    assert dict(Work.objects.values_list("attempt", "state")) == {1: "Applied", 2: "Withdrawing"}


def test_it_moves_a_failed_share_once_its_toleration_is_over():
    divided()
    assert report_share(2, FAILED).state == "Backoff"
    sweep.run(timezone.now() + timedelta(seconds=1))
    job = Job.objects.get()
    assert job.state == "Moving" and brief(job) == [(1, "north", 4, 0, "Placed"), (2, "south", 0, 0, "Lost")]


def test_it_places_only_what_was_lost_and_leaves_the_rest_alone():
    divided(completions=9)
    report_share(1, {"active": 4}, running=4)
    report_share(2, {"active": 1, "succeeded": 2}, running=1)
    job = lose(2)
    assert job.state == "Moving" and job.cluster.name == "north"
    assert loop.run(timezone.now) == 1
    assert brief(Job.objects.get())[1:] == [(2, "south", 0, 2, "Lost"), (3, "east", 1, 1, "Placed")]
    assert dict(Work.objects.values_list("attempt", "state"))[1] == "Pending"


def test_it_withdraws_the_lost_copy_only_when_its_replacement_has_a_place():
    divided()
    lose(2)
    assert Work.objects.get(attempt=2).state == "Applied"
    loop.run(timezone.now)
    assert Work.objects.get(attempt=2).state == "Withdrawing"
    assert Work.objects.get(attempt=1).state == "Pending"


def test_it_goes_on_with_a_share_whose_cluster_is_back_before_another_place_was_found():
    divided()
    job = lose(2)
    assert division_status.counts(job, 2)
    job = report_share(2, {"active": 2}, running=2)
    assert brief(job)[1] == (2, "south", 2, 0, "Running")
    assert Attempt.objects.get(number=2).ended_at is None


def test_it_wants_no_copy_of_a_share_that_was_replaced():
    divided()
    lose(2)
    loop.run(timezone.now)
    assert not division_status.counts(Job.objects.get(), 2) and division_status.counts(Job.objects.get(), 3)


def test_it_gives_up_when_the_shares_have_spent_the_attempts(settings):
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, max_attempts=1)
    divided()
    division.leave(Job.objects.get(), 2, Outcome.REFUSED, LOST, timezone.now(), purge=PurgeMode.DIRECTLY)
    assert Job.objects.get().reason["code"] == "AttemptsExhausted"
    assert not Attempt.objects.filter(ended_at__isnull=True).exists()


def test_it_moves_the_shares_of_a_cluster_that_was_detached():
    divided()
    Cluster.objects.get(name="south").delete()
    sweep.run(timezone.now())
    assert Job.objects.get().state == "Moving"
    assert Attempt.objects.get(number=2).outcome == "Lost"


def test_it_moves_a_share_at_most_once():
    divided()
    lose(2)
    assert not division.leave(Job.objects.get(), 2, Outcome.LOST, LOST, timezone.now())
