"""Members that hang up, err, fall silent or are changed from outside, while jobs are sent to them and followed."""

from dataclasses import replace
from uuid import UUID

import pytest
from django.db import transaction
from django.utils import timezone

from fleet.changes import journal
from fleet.models import Cluster, Hold, Identity
from jobs.kinds import registry
from jobs.models import DeletedJob, Job, Work
from jobs.services.dispatch.members import member_objects
from jobs.services.lifecycle.copies import provenance
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
NOTHING = {"pytorchReplicaSpecs": {}}


def test_it_makes_one_copy_when_the_member_hangs_up_after_it_took_the_job(world):
    north = world.member("north", 8)
    north.faults.reset_rate = 1.0
    world.apply(POLICY, pytorch_job("llama", duration="10h"))
    world.until(lambda: Work.objects.filter(tries__gt=1).exists(), "it was tried more than once")
    north.faults.reset_rate = 0.0
    assert world.expect("llama", "Running").attempt == 1
    assert world.copies() == {"north": ["llama"]} and len(world.pods("north")) == 3


def test_it_sends_the_job_when_the_member_that_died_under_the_dispatch_is_back(world, settings):
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, cluster_toleration_s=600)
    north = world.member("north", 8)
    north.faults.slow_s = 0.3
    world.apply(POLICY, pytorch_job("llama", duration="10h"))
    world.until(lambda: Work.objects.filter(state="Sending").exists(), "it is being sent")
    north.faults.away = True
    world.until(lambda: "cannot be reached" in Work.objects.get().message, "the try has failed")
    north.faults.away, north.faults.slow_s = False, 0.0
    world.expect("llama", "Running", on="north")
    assert world.copies() == {"north": ["llama"]}


def test_it_places_a_job_elsewhere_whose_member_died_before_it_took_it(world, settings):
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, cluster_toleration_s=0.5)
    first = world.member("north", 8)
    world.member("south", 4)
    first.faults.error_rate = 1.0
    world.apply(POLICY, pytorch_job("llama", duration="10h"))
    first.faults.away = True
    world.expect("llama", "Running", on="south")
    first.faults.away, first.faults.error_rate = False, 0.0
    world.until(lambda: world.copies() == {"north": [], "south": ["llama"]}, "one copy is left")


def test_it_runs_every_job_once_on_a_member_that_errs_and_hangs_up(world):
    north = world.member("north", 8, 8)
    north.faults.error_rate, north.faults.reset_rate = 0.2, 0.2
    names = [f"job-{i}" for i in range(12)]
    world.apply(POLICY, *(pytorch_job(name, workers=0, duration="5s") for name in names))
    world.until(lambda: Job.objects.filter(state="Succeeded").count() == 12, "all have succeeded")
    assert set(Job.objects.values_list("attempt", flat=True)) == {1}
    north.faults.error_rate = north.faults.reset_rate = 0.0
    assert sorted(world.copies()["north"]) == sorted(names)


def test_it_follows_on_after_a_watch_went_stale(world):
    north = world.member("north", 8)
    world.apply(POLICY, pytorch_job("llama", duration="10h"))
    world.expect("llama", "Running")
    north.faults.stale_watch = True
    world.finish("llama")
    world.until(lambda: all(p["status"]["phase"] == "Succeeded" for p in world.pods("north")), "it ends unseen")
    north.faults.stale_watch = False
    world.expect("llama", "Succeeded")


def test_it_refuses_to_touch_an_object_of_somebody_else_and_goes_where_there_is_none(world):
    world.member("north", 8)
    world.member("south", 4)
    theirs = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "llama"}, "spec": NOTHING}
    world.clients["north"].create("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs", theirs)
    world.apply(POLICY, pytorch_job("llama", duration="10h"))
    world.expect("llama", "Running", on="south")
    assert world.copies() == {"north": ["llama"], "south": ["llama"]}
    assert world.clients["north"].get("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/llama")["spec"] == NOTHING


JOB = UUID("11111111-1111-4111-8111-111111111111")


def stray(world, name: str, fleet: str) -> None:
    """A copy of a job that was deleted, as a worker may make it that outlived its claim."""
    kind, cluster = registry.kind_of("kubeflow.org/v1", "PyTorchJob"), Cluster.objects.get()
    body = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name, "namespace": "default"}}
    body["metadata"]["labels"] = member_objects.labels(fleet, str(JOB), 1)
    made = {**body, "spec": NOTHING}
    provenance.put_marks(kind, made, Work(job_uid=JOB, attempt=1, cluster=cluster))
    world.clients["north"].create("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs", made)


def test_it_removes_a_copy_of_ours_that_no_job_wants(world):
    world.member("north", 8)
    DeletedJob.objects.create(uid=JOB, at=timezone.now())
    stray(world, "late", Identity.here())
    world.until(lambda: world.copies() == {"north": []}, "the stray copy is gone")


def test_it_leaves_alone_what_another_fleet_made_in_the_same_member(world):
    world.member("north", 8)
    DeletedJob.objects.create(uid=JOB, at=timezone.now())
    stray(world, "theirs", "another-fleet")
    stray(world, "ours", Identity.here())
    world.until(lambda: world.copies() == {"north": ["theirs"]}, "only ours is removed")


def test_it_wakes_a_waiting_gang_by_the_event_alone(unswept):
    unswept.member("north", 4)
    unswept.apply(POLICY, pytorch_job("first", workers=3, duration="10h"))
    unswept.expect("first", "Running")
    unswept.apply(pytorch_job("second", workers=3))
    unswept.until(lambda: (unswept.job("second").reason or {}).get("code") == "NoClusterFits", "second waits")
    unswept.finish("first")
    unswept.expect("second", "Running", on="north")


def test_it_wakes_a_waiting_gang_by_the_sweep_when_no_event_came(world):
    world.member("north", 2)
    world.apply(POLICY, pytorch_job("llama", workers=3))
    world.until(lambda: (world.job("llama").reason or {}).get("code") == "NoClusterFits", "it waits")
    node = Cluster.objects.get().nodes.get()
    with transaction.atomic():
        Cluster.objects.get().nodes.update(allocatable={**node.allocatable, "nvidia.com/gpu": 8})
        journal.append([journal.Change("Node", "north", node.name, "", journal.Action.MODIFIED)], timezone.now())
    world.until(lambda: world.job("llama").state != "Queued", "it was placed")


def test_it_gives_back_every_hold_and_no_hold_early(world):
    world.member("north", 4)
    world.apply(POLICY, *(pytorch_job(f"job-{i}", workers=1, duration="5s") for i in range(4)))
    world.until(lambda: Job.objects.filter(state="Succeeded").count() == 4, "all have succeeded")
    assert not Hold.objects.filter(released_at__isnull=True).exists()
