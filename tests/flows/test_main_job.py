"""The main job: a gang is placed whole on one member, runs there, ends there; waits with a reason; leaves on request."""

import pytest

from jobs.models import Work
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_runs_a_gang_on_exactly_one_member_and_follows_it_to_its_end(world):
    for name in ("north", "south"):
        world.member(name, 8)
    world.apply(POLICY, pytorch_job("llama", duration="10h"))
    job = world.expect("llama", "Running")
    home, other = str(job.cluster), {"north": "south", "south": "north"}[str(job.cluster)]
    assert world.copies() == {home: ["llama"], other: []}
    assert len(world.pods(home)) == 3 and world.pods(other) == []
    world.finish("llama")
    world.expect("llama", "Succeeded")


def test_it_tells_the_binding_as_the_seed_does(world):
    world.member("north", 8)
    world.apply(POLICY, pytorch_job("llama"))
    world.expect("llama", "Running")
    told = "Binding has been scheduled successfully. Result: {north:0,[{master 1} {worker 2}]}"
    assert ("ScheduleBindingSucceed", told) in world.events("llama")


def test_it_keeps_a_gang_that_fits_nowhere_waiting_and_says_where_what_is_short(world):
    world.member("north", 2)
    world.member("south", 1)
    world.apply(POLICY, pytorch_job("llama", workers=3))
    world.until(lambda: (world.job("llama").reason or {}).get("code") == "NoClusterFits", "the reason is written")
    short = {v["cluster"]: v["short"] for v in world.job("llama").reason["clusters"]}
    assert short == {"north": {"nvidia.com/gpu": 2}, "south": {"nvidia.com/gpu": 3}}
    assert world.copies() == {"north": [], "south": []}


def test_it_starts_a_waiting_gang_when_the_one_before_it_is_deleted(world):
    world.member("north", 4)
    world.apply(POLICY, pytorch_job("first", workers=3, duration="10h"))
    world.expect("first", "Running")
    world.apply(pytorch_job("second", workers=3))
    world.until(lambda: (world.job("second").reason or {}).get("code") == "NoClusterFits", "second waits")
    world.delete("first")
    world.expect("second", "Running", on="north")


def test_it_removes_copy_and_pods_from_the_member_when_the_job_is_deleted(world):
    world.member("north", 4)
    world.apply(POLICY, pytorch_job("llama", duration="10h"))
    world.expect("llama", "Running")
    world.delete("llama")
    world.until(lambda: world.copies() == {"north": []} and world.pods("north") == [], "the member is empty")
    world.until(lambda: not Work.objects.exists(), "the job is forgotten")


def test_it_suspends_in_the_member_and_resumes_as_a_new_attempt(world):
    world.member("north", 4)
    world.apply(POLICY, pytorch_job("llama", duration="10h"))
    world.expect("llama", "Running")
    world.suspend("llama")
    world.until(lambda: world.pods("north") == [], "the pods are gone")
    assert world.job("llama").state == "Suspended" and world.copies() == {"north": ["llama"]}
    world.resume("llama")
    assert world.expect("llama", "Running").attempt == 2


def test_it_runs_a_batch_job_too(world):
    world.member("north", 4)
    world.apply(
        POLICY,
        """
apiVersion: batch/v1
kind: Job
metadata: {name: prep}
spec:
  parallelism: 2
  completions: 2
  template:
    metadata: {annotations: {convoy.dev/duration: 5s}}
    spec: {restartPolicy: Never, containers: [{name: main, image: example.com/prep}]}
""",
    )
    world.expect("prep", "Succeeded", on="north")
