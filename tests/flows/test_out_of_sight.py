"""Members that are out of sight through a fault of ours (I12): refused credentials, our own network. Nobody is moved."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.member.client import MemberClient
from fleet.models import Cluster, Event
from fleet.services.clusters import clusters
from fleet.services.clusters import health as cluster_health
from jobs.models import Attempt, Job, Work
from jobs.services.follow import sweep
from jobs.services.follow.timeouts import health
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
MINUTES = (0, 11, 71, 1800, 3600)
"""Seconds: the grace is over, the toleration, and everybody's patience."""


def look_and_sweep(*seconds: float) -> int:
    """What the beat does at these moments; how many jobs were moved."""
    start, moved = timezone.now(), 0
    for each in seconds:
        now = start + timedelta(seconds=each)
        cluster_health.check_all(now)
        moved += health.check(now)
        sweep.run(now)
    return moved


def one_copy_each(world) -> None:
    found = [name for names in world.copies().values() for name in names]
    assert sorted(found) == sorted(Job.objects.values_list("name", flat=True))


def test_it_moves_nobody_because_a_token_was_rotated_and_goes_on_when_it_is_renewed(unswept, as_admin):
    world = unswept
    for name in ("north", "south"):
        world.member(name, 8, time_scale=1.0)
    world.apply(POLICY, *(pytorch_job(name, workers=0, duration="10h") for name in ("llama", "bert", "opt")))
    for name in ("llama", "bert", "opt"):
        world.expect(name, "Running")
    home = str(world.job("llama").cluster)
    world.members[home].rotate("another-token")
    assert look_and_sweep(*MINUTES) == 0
    assert set(Job.objects.values_list("state", "attempt")) == {("Running", 1)}
    row = Cluster.objects.get(name=home)
    assert (row.state, row.state_reason) == ("NotReady", "CredentialsRefused")
    assert [t["effect"] for t in row.taints] == ["NoSchedule"]
    shown = as_admin.get(f"/api/v1/clusters/{home}/").json()
    assert shown["reason"] == "CredentialsRefused" and "none is moved" in shown["message"]
    assert Event.objects.filter(reason="CredentialsRefused", type="Warning", regarding_name=home).count() == 1
    told = as_admin.get(f"/api/v1/jobs/{world.job('llama').uid}/explain/").json()["message"]
    assert home in told and "refuses the credentials" in told
    clusters.renew(row, yaml.safe_dump(world.members[home].kubeconfig()), by="ada", now=timezone.now())
    assert look_and_sweep(0) == 0 and Cluster.objects.get(name=home).state == "Ready"
    world.clients[home] = MemberClient(world.members[home].access())
    one_copy_each(world)
    assert Attempt.objects.count() == 3 and Work.objects.filter(state="Applied").count() == 3


def test_it_starts_no_second_copy_of_a_resumed_job_while_the_first_cannot_be_removed(unswept):
    world = unswept
    for name in ("north", "south"):
        world.member(name, 8, time_scale=1.0)
    world.apply(POLICY, pytorch_job("llama", duration="10h"))
    home = str(world.expect("llama", "Running").cluster)
    world.members[home].rotate("another-token")
    look_and_sweep(0, 11)
    world.suspend("llama")
    world.resume("llama")
    world.until(lambda: "CredentialsRefused" in str(world.job("llama").reason), "it waits for the old copy")
    other = {"north": "south", "south": "north"}[home]
    assert world.clients[other].list("/apis/kubeflow.org/v1/pytorchjobs")["items"] == []
    clusters.drain(Cluster.objects.get(name=home), by="ada", now=timezone.now())
    sweep.run(timezone.now() + timedelta(seconds=60))
    world.until(lambda: str(world.job("llama").cluster) == other, "it is placed on the other one")
    world.until(lambda: sweep.run(timezone.now()) or world.job("llama").state == "Running", "it runs there")
