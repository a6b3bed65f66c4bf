"""A running job gets another size: what is decided, what is charged and held, and what is refused with which numbers."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.changes import events, journal
from fleet.errors import InvalidInput
from fleet.models import Event, Hold
from fleet.services.clusters import clusters
from jobs.models import Job
from jobs.services.follow import sweep
from jobs.services.scheduling.decisions import growth
from tests.jobs.services import resizing as elastic
from tests.jobs.services.resizing import cycle, order, resize, runs, size, sizes_agree
from tests.support import books
from tests.support.books import GPU
from tests.support.quotas import apply_tree, gpus, leaf

pytestmark = pytest.mark.django_db


@pytest.fixture
def north():
    return books.a_cluster("north", 8)


def test_it_gives_back_charge_and_size_at_once_when_a_job_shrinks(north):
    apply_tree(leaf("a", **gpus(8, 8)))
    books.apply(elastic.elastic("llama", 4, queue="a"))
    runs("llama")
    assert books.used("root/a")[GPU] == 4
    resize("llama", 2)
    assert (size("llama"), books.used("root/a")[GPU], books.job("llama").gpus) == (2, 2, 2)
    assert books.job("llama").manifest["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 2
    assert (books.job("llama").state, books.job("llama").attempt) == (Job.State.RUNNING, 1)
    assert (order("llama").resize_wanted, order("llama").resize_done) == (1, 0)
    sizes_agree()


def test_it_grows_a_job_when_its_quota_and_its_cluster_have_room(north):
    apply_tree(leaf("a", **gpus(8, 8)))
    books.apply(elastic.elastic("llama", 2, queue="a"))
    runs("llama")
    resize("llama", 5)
    assert (size("llama"), books.used("root/a")[GPU]) == (2, 2)
    sizes_agree()
    cycle()
    assert (size("llama"), books.used("root/a")[GPU]) == (5, 5)
    hold = Hold.objects.get(job_uid=books.job("llama").uid, released_at=None)
    assert (hold.amounts[GPU], hold.pods, hold.nodes[0][1]) == (3, 5, ["node"])
    assert books.job("llama").resize is None and order("llama").resize_wanted == 1
    sizes_agree()
    elastic.not_over_committed(north)


def test_a_growth_waits_with_the_amounts_that_its_quota_is_short_of(north):
    apply_tree(leaf("a", **gpus(4, 4)))
    books.apply(elastic.elastic("llama", 2, queue="a"))
    runs("llama")
    resize("llama", 5)
    cycle()
    reason = books.job("llama").resize["reason"]
    assert (size("llama"), reason["code"]) == (2, "QuotaExceeded")
    assert (reason["quota"]["asked"], reason["quota"]["used"], reason["quota"]["max"]) == (3, 2, 4)
    assert books.job("llama").state == Job.State.RUNNING and books.job("llama").reason is None
    apply_tree(leaf("a", **gpus(5, 5)))
    cycle()
    assert (size("llama"), books.job("llama").resize) == (5, None)


def test_a_growth_waits_with_the_amounts_that_its_cluster_is_short_of(north):
    books.a_cluster("south", 100)
    books.apply(elastic.elastic("llama", 2, most=20), elastic.elastic("other", 4))
    Job.objects.filter(name="other").update(priority=1)
    for name in ("other", "llama"):
        runs(name)
    where = books.job("llama").cluster
    resize("llama", 20)
    node = where.nodes.get()
    node.allocatable = {**node.allocatable, GPU: 8}
    node.save()
    events.announce(
        [journal.Change("Node", where.name, "node", str(where.uid), journal.Action.MODIFIED)], timezone.now()
    )
    cycle()
    reason = books.job("llama").resize["reason"]
    assert (size("llama"), reason["code"]) == (2, "NotEnoughFree")
    assert reason["clusters"][0]["cluster"] == where.name and reason["clusters"][0]["short"][GPU] > 0


def test_a_waiting_gang_comes_before_a_growth(north):
    apply_tree(leaf("a", **gpus(8, 8)))
    books.apply(elastic.elastic("llama", 4, queue="a"))
    runs("llama")
    resize("llama", 6)
    books.apply(elastic.elastic("next", 4, queue="a"))
    cycle()
    assert (size("llama"), books.job("next").state) == (4, Job.State.PLACED)


@pytest.mark.parametrize(
    ("replicas", "words"),
    [
        (1, "1 is below the min of role worker (min 2, max 6, by spec.elasticPolicy), which has 4 now"),
        (7, "7 is above the max of role worker (min 2, max 6, by spec.elasticPolicy), which has 4 now"),
        (0, "0 is below the min"),
    ],
)
def test_it_refuses_a_size_outside_its_bounds_with_the_numbers(north, replicas, words):
    books.apply(elastic.elastic("llama", 4, least=2, most=6))
    runs("llama")
    with pytest.raises(InvalidInput, match=".*") as refused:
        resize("llama", replicas)
    assert words in refused.value.message
    assert (size("llama"), books.job("llama").resize, order("llama").resize_wanted) == (4, None, 0)


def test_it_refuses_a_job_that_does_not_run_with_its_state_and_its_size(north):
    books.apply(elastic.elastic("llama", 4))
    books.cycle()
    with pytest.raises(InvalidInput) as refused:
        resize("llama", 2)
    assert "only a running job is resized, and it is Placed with 4 worker" in refused.value.message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("elasticPolicy", "state spec.elasticPolicy.minReplicas and maxReplicas, or suspend the job"),
        ("kind", "this TFJob is not resized while it runs: suspend the job, apply another size, and resume it"),
    ],
)
def test_it_refuses_a_job_without_bounds_with_the_way_to_change_it(north, change, words):
    body = yaml.safe_load(elastic.elastic("llama", 4))
    del body["spec"]["elasticPolicy"]
    if change == "kind":
        north.apis = {**north.apis, "kubeflow.org/v1": {"TFJob": "tfjobs", "PyTorchJob": "pytorchjobs"}}
        north.save()
        body["kind"], body["spec"] = "TFJob", {"tfReplicaSpecs": body["spec"]["pytorchReplicaSpecs"]}
        body["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["name"] = "tensorflow"
    books.apply(yaml.safe_dump(body))
    Job.objects.filter(name="llama").update(state=Job.State.RUNNING, attempt=1)
    with pytest.raises(InvalidInput) as refused:
        resize("llama", 2)
    assert words in refused.value.message


def test_a_later_request_replaces_the_growth_that_waits(north):
    apply_tree(leaf("a", **gpus(4, 4)))
    books.apply(elastic.elastic("llama", 2, queue="a"))
    runs("llama")
    resize("llama", 8)
    resize("llama", 3)
    assert books.job("llama").resize["sizes"] == {"worker": 3}
    resize("llama", 1)
    assert (books.job("llama").resize, size("llama")) == (None, 1)
    resize("llama", 8)
    resize("llama", 1)
    assert (books.job("llama").resize, size("llama"), order("llama").resize_wanted) == (None, 1, 1)
    sizes_agree()


def test_the_same_request_twice_changes_nothing_the_second_time(north):
    books.apply(elastic.elastic("llama", 2))
    runs("llama")
    resize("llama", 4)
    before = books.job("llama").resource_version
    resize("llama", 4)
    assert books.job("llama").resource_version == before
    cycle()
    resize("llama", 4)
    assert (size("llama"), order("llama").resize_wanted) == (4, 1)
    assert Event.objects.filter(reason="Resized").count() == 1


def test_what_is_held_of_a_growth_is_given_back_when_the_job_shrinks_before_its_pods_come(north):
    books.apply(elastic.elastic("llama", 2))
    job = runs("llama")
    resize("llama", 6)
    cycle()
    resize("llama", 4)
    hold = Hold.objects.get(job_uid=job.uid, released_at=None)
    assert (hold.amounts[GPU], hold.pods, sum(a[GPU] * len(n) for a, n in hold.nodes)) == (2, 4, 2)
    resize("llama", 2)
    assert not Hold.objects.filter(job_uid=job.uid, released_at=None).exists()
    sizes_agree()


def test_the_scheduler_sees_a_hold_that_shrank_in_the_next_cycle(north):
    books.apply(elastic.elastic("llama", 2))
    runs("llama")
    resize("llama", 8)
    cycle()
    books.apply(elastic.elastic("next", 4))
    cycle()
    assert books.job("next").state == Job.State.QUEUED
    resize("llama", 4)
    cycle()
    assert books.job("next").state == Job.State.PLACED
    elastic.not_over_committed(north)


def test_it_does_not_grow_before_the_pods_of_the_size_before_have_left(north):
    books.apply(elastic.elastic("llama", 4))
    runs("llama")
    resize("llama", 2)
    resize("llama", 4)
    cycle()
    assert (size("llama"), books.job("llama").resize["reason"]["code"]) == (2, "WaitingForMember")
    elastic.bind("llama")
    cycle()
    assert (size("llama"), books.job("llama").resize) == (4, None)


def test_a_job_that_moves_keeps_the_size_now_meant(north):
    books.a_cluster("south", 8)
    apply_tree(leaf("a", **gpus(8, 8)))
    books.apply(elastic.elastic("llama", 4, queue="a"))
    books.tolerating("llama", seconds=0)
    runs("llama")
    resize("llama", 3)
    resize("llama", 8)
    books.report("llama", "Failed")
    sweep.run(timezone.now() + timedelta(seconds=1))
    cycle()
    job = books.job("llama")
    assert (job.attempt, size("llama"), job.resize["sizes"]) == (2, 3, {"worker": 8})
    hold = Hold.objects.get(job_uid=job.uid, attempt=2)
    assert (hold.pods, hold.amounts[GPU], books.used("root/a")[GPU]) == (3, 3, 3)
    sizes_agree()


def test_a_batch_job_is_resized_between_one_and_its_completions(north):
    books.apply(elastic.batch("shards", 2, 6))
    runs_batch("shards")
    with pytest.raises(InvalidInput, match="7 is above the max of role worker"):
        resize("shards", 7)
    resize("shards", 6)
    cycle()
    assert books.job("shards").manifest["spec"]["parallelism"] == 6
    resize("shards", 1)
    assert (size("shards"), books.job("shards").total[GPU]) == (1, 1)
    sizes_agree()


def runs_batch(name: str) -> None:
    books.cycle()
    books.sent()
    Job.objects.filter(name=name).update(state=Job.State.RUNNING)
    elastic.bind(name)


def test_a_job_without_a_quota_grows_and_is_charged_nothing(north):
    books.apply(elastic.elastic("llama", 2))
    runs("llama")
    resize("llama", 4)
    cycle()
    assert (size("llama"), books.job("llama").charge) == (4, None)


def test_two_growths_do_not_take_the_same_room(north):
    for name in ("one", "two"):
        books.apply(elastic.elastic(name, 2))
        runs(name)
    resize("one", 5)
    resize("two", 5)
    cycle()
    assert sorted([size("one"), size("two")]) == [2, 5]
    elastic.not_over_committed(north)


def test_a_held_queue_and_a_cordoned_cluster_let_nothing_grow(north):
    apply_tree(leaf("a", **gpus(8, 8)))
    books.apply(elastic.elastic("llama", 2, queue="a"))
    runs("llama")
    north.cordoned = True
    north.save()
    clusters.announce(north, ["cordoned"], timezone.now())
    resize("llama", 4)
    cycle()
    assert (size("llama"), books.job("llama").resize["reason"]["code"]) == (2, "Cordoned")
    resize("llama", 1)
    assert size("llama") == 1


def test_a_job_that_is_charged_by_flavor_is_not_resized(north):
    apply_tree(leaf("a", **gpus(8, 8)))
    books.apply(elastic.elastic("llama", 2, queue="a"))
    job = runs("llama")
    resize("llama", 4)
    Job.objects.update(charge={**job.charge, f"{GPU}:a100": 2})
    with pytest.raises(InvalidInput, match="charged by GPU flavor"):
        resize("llama", 1)
    assert growth.load(timezone.now(), idle=True)[0].unready.code == "NeverFits"


@pytest.mark.parametrize("fewest", [2, 3])
def test_a_shrunk_volcano_job_takes_its_own_file_again_and_needs_no_more_pods_at_once_than_it_states(north, fewest):
    """As a GitOps controller does, at any size in force."""
    north.apis = {**north.apis, elastic.VOLCANO: {"Job": "jobs"}}
    north.save()
    text = elastic.volcano("llama", 8, bounds=f"{fewest}:8", at_once=4)
    books.apply(text)
    runs_batch("llama")
    resize("llama", 3)
    assert books.job("llama").manifest["spec"]["minAvailable"] == 3
    elastic.bind("llama")
    books.apply(text)
    assert books.job("llama").resize["sizes"] == {"worker": 8}
    cycle()
    job = books.job("llama")
    assert (size("llama"), job.manifest["spec"]["minAvailable"]) == (8, 4)
    books.apply(text)
    assert books.job("llama").generation == job.generation
    sizes_agree()
