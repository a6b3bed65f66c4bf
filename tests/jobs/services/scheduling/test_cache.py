"""What the scheduler knows while others write: it may miss room for a moment, and never sees room that is not there."""

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.db import transaction

from fleet.changes import journal
from fleet.models import Cluster, Hold, JournalEntry, Node
from jobs.events import announce_jobs
from jobs.models import Job
from jobs.services.scheduling.cache import SchedulerCache
from quotas.models import QuotaTree
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support.between import after_each_look_at

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 11, 21, tzinfo=UTC)
GPUS = {"nvidia.com/gpu": 4, "pods": 4}


@pytest.fixture
def held() -> Node:
    """A node of 4 GPUs, all of them held for a gang whose pods are not there yet."""
    north = Cluster.objects.create(name="north", state="Ready", state_since=NOW, joined_at=NOW, synced_at=NOW)
    Hold.objects.create(
        cluster=north, job_uid=uuid4(), attempt=1, amounts=GPUS, nodes=[[GPUS, ["n1"]]], pods=4, made_at=NOW
    )
    return north.nodes.create(name="n1", ready=True, allocatable={"nvidia.com/gpu": 4, "pods": 100})


def the_pods_come(node: Node) -> None:
    """As the watcher writes it: what the node has left, and the hold's end, in one transaction."""
    with transaction.atomic():
        Node.objects.filter(pk=node.pk).update(requested=GPUS)
        Hold.objects.update(released_at=NOW)
        journal.append([journal.Change("Node", "north", "n1", str(node.cluster.uid), journal.Action.MODIFIED)], NOW)


def free(cache: SchedulerCache) -> int:
    places = cache.refresh(NOW).places
    node = places._nodes["north", "n1"]
    held = sum(amounts["nvidia.com/gpu"] for p in places.holds.values() for amounts, _ in p.nodes)
    return node.allocatable["nvidia.com/gpu"] - node.requested.get("nvidia.com/gpu", 0) - held


@pytest.mark.parametrize("table", ["fleet_node", "fleet_hold", "fleet_journalentry"])
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "new"])
def test_it_sees_no_room_where_a_gang_s_pods_come_while_it_looks(held, table, kept):
    cache = SchedulerCache()
    journal.append([journal.Change("Node", "north", "n1", str(held.cluster.uid), journal.Action.ADDED)], NOW)
    if kept:
        assert free(cache) == 0
        journal.append([journal.Change("Node", "north", "n1", str(held.cluster.uid), journal.Action.MODIFIED)], NOW)
    with after_each_look_at(table, lambda: the_pods_come(held)):
        assert free(cache) <= 0
    assert free(cache) == 0


@pytest.fixture
def charged(db: None) -> Job:
    """A job that runs, with all that its queue has."""
    all_of_it = quota("root", {"cpu": 4}, {"cpu": 4}, quota("a", {"cpu": 4}, {"cpu": 4}, namespaces=["a"]))
    trees.apply(manifest(all_of_it), by="t", now=NOW)
    return Job.objects.create(
        kind="Job", api_version="batch/v1", namespace="a", name="j", manifest={}, roles=[], total={}, leaf="root/a",
        charge={"cpu": 4000},
        state=Job.State.RUNNING, created_at=NOW, queued_at=NOW, tree_version=QuotaTree.objects.get().resource_version,
    )  # fmt: skip


@transaction.atomic
def it_ends(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(charge=None, state=Job.State.SUCCEEDED)
    Hold.objects.filter(job_uid=job.uid).update(released_at=NOW)
    announce_jobs([Job.objects.get(pk=job.pk)], NOW)


def test_it_counts_a_charge_that_ends_while_it_looks_neither_for_ever_nor_twice(charged):
    cache = SchedulerCache()
    with after_each_look_at("jobs_job", lambda: it_ends(charged)):
        cache.refresh(NOW)
    quota_ = cache.refresh(NOW).quota
    assert quota_ and not quota_.ledger.held.used.any()


@pytest.mark.parametrize("table", ["fleet_hold", "fleet_journalentry", "jobs_job"])
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "new"])
def test_it_sees_a_job_that_ends_while_it_looks_give_back_its_charge_and_its_place_together(held, charged, table, kept):
    Hold.objects.update(job_uid=charged.uid)
    announce_jobs([charged], NOW)
    cache = SchedulerCache()
    if kept:
        cache.refresh(NOW)
        announce_jobs([charged], NOW)
    with after_each_look_at(table, lambda: it_ends(charged)):
        seen = cache.refresh(NOW)
    assert seen.quota and bool(seen.quota.ledger.held.used.any()) == bool(seen.places.holds)
    seen = cache.refresh(NOW)
    assert seen.quota and not seen.quota.ledger.held.used.any() and not seen.places.holds


def a_waiting_job() -> Job:
    return Job.objects.create(
        kind="Job", api_version="batch/v1", namespace="a", name="j", manifest={}, total={"cpu": 1, "pods": 1},
        roles=[{"name": "job", "replicas": 1, "request": {"cpu": 1}}], created_at=NOW, queued_at=NOW, tree_version=0,
    )  # fmt: skip


def test_it_does_not_read_again_those_it_just_told_why_they_wait():
    job, cache = a_waiting_job(), SchedulerCache()
    announce_jobs([job], NOW)
    cache.refresh(NOW)
    announce_jobs([job], NOW)
    cache.applied([], [job.resource_version])
    Job.objects.update(priority=7)
    assert cache.refresh(NOW).gangs[job.pk].priority == 0


def test_it_reads_those_again_who_were_told_and_then_changed():
    job, cache = a_waiting_job(), SchedulerCache()
    announce_jobs([job], NOW)
    cache.refresh(NOW)
    announce_jobs([job], NOW)
    cache.applied([], [job.resource_version])
    job.priority = 7
    announce_jobs([job], NOW, ["priority"])
    assert cache.refresh(NOW).gangs[job.pk].priority == 7
    Job.objects.update(priority=8)
    announce_jobs([job], NOW)
    assert cache.refresh(NOW).gangs[job.pk].priority == 8


def created() -> None:
    announce_jobs([a_waiting_job()], NOW)


def changed() -> None:
    Job.objects.update(priority=7)
    announce_jobs([Job.objects.get()], NOW)


@transaction.atomic
def deleted() -> None:
    journal.append([journal.Change("Job", "a", "j", str(Job.objects.get().uid), journal.Action.DELETED)], NOW)
    Job.objects.all().delete()


@pytest.mark.parametrize("deed", [created, changed, deleted])
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "new"])
def test_it_knows_in_the_next_cycle_what_happened_to_a_waiting_job_while_it_looked(
    deed: Callable[[], None], kept: bool
):
    cache = SchedulerCache()
    if deed is not created:
        announce_jobs([a_waiting_job()], NOW)
    journal.append([journal.Change("Node", "north", "n1", "u", journal.Action.MODIFIED)], NOW)
    if kept:
        cache.refresh(NOW)
    with after_each_look_at("fleet_journalentry", deed):
        cache.refresh(NOW)
    waiting = {pk: gang.priority for pk, gang in cache.refresh(NOW).gangs.items()}
    assert waiting == dict(Job.objects.values_list("pk", "priority"))


def test_it_reads_versions_of_a_restored_journal_that_it_once_wrote_itself(held):
    """A restored database gives versions out again: what an earlier journal had under them is no reason to skip them."""
    cache = SchedulerCache()
    uid = str(held.cluster.uid)
    journal.append([journal.Change("Node", "north", "n1", uid, journal.Action.ADDED)], NOW)
    cache.refresh(NOW)
    [mine] = journal.append([journal.Change("Job", "default", "a", str(uuid4()), journal.Action.MODIFIED)], NOW)
    cache.applied([], [mine])
    cache.invalidate()
    JournalEntry.objects.filter(version=mine).delete()
    cache.refresh(NOW)
    Node.objects.update(allocatable={"nvidia.com/gpu": 16})
    JournalEntry.objects.create(
        version=mine, kind="Node", namespace="north", name="n1", object_uid=uid, action="MODIFIED", at=NOW
    )
    assert cache.refresh(NOW).places._nodes["north", "n1"].allocatable == {"nvidia.com/gpu": 16}
