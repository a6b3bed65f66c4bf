"""Who might be asked to make room, kept up to date from the journal, is who would be found anew."""

from datetime import UTC, datetime

import pytest
from django.db import transaction

from fleet.changes import journal
from fleet.models import Cluster, Hold, Pod
from jobs import snapshot
from jobs.core.gang.types import AdmittedGang
from jobs.core.preemption.cost import Loss
from jobs.events import announce_jobs
from jobs.models import Job
from jobs.services.scheduling.cache import SchedulerCache
from quotas.models import QuotaTree
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 11, 21, tzinfo=UTC)
CPU = {"cpu": 1000}


@pytest.fixture
def north() -> Cluster:
    root = quota("root", {"cpu": 4}, {"cpu": 4}, quota("a", {"cpu": 4}, {"cpu": 4}, namespaces=["a"]))
    trees.apply(manifest(root), by="t", now=NOW)
    made = Cluster.objects.create(name="north", state="Ready", state_since=NOW, joined_at=NOW, synced_at=NOW)
    for name in ("n1", "n2"):
        made.nodes.create(name=name, ready=True, allocatable={"cpu": 4000, "pods": 100})
    return made


def runs(cluster: Cluster, name: str, *nodes: str, held: bool = False) -> Job:
    version = QuotaTree.objects.get().resource_version
    roles = [{"name": "worker", "replicas": 2, "request": CPU}]
    job = Job.objects.create(
        kind="PyTorchJob", api_version="kubeflow.org/v1", namespace="a", name=name, manifest={"spec": {}}, roles=roles,
        total={"cpu": 2000}, leaf="root/a", charge={"cpu": 2000}, state=Job.State.RUNNING, cluster=cluster, attempt=1,
        created_at=NOW, queued_at=NOW, started_at=NOW, tree_version=version,
    )  # fmt: skip
    for number, node in enumerate(nodes):
        bind(job, number, node)
    if held:
        Hold.objects.create(cluster=cluster, job_uid=job.uid, attempt=1, amounts=CPU, nodes=[], pods=1, made_at=NOW)
    announce_jobs([job], NOW)
    return job


def bind(job: Job, number: int, node: str) -> None:
    Pod.objects.update_or_create(
        cluster=job.cluster, namespace="a", name=f"{job.name}-{number}",
        defaults={
            "job_uid": job.uid, "attempt": 1, "role": "worker", "index": number, "phase": "Running", "node": node,
            "created_at": NOW,
        },
    )  # fmt: skip


@transaction.atomic
def moves(job: Job, number: int, before: str, after: str) -> None:
    """As the watcher tells it: nothing but the nodes."""
    bind(job, number, after)
    uid = str(job.cluster.uid)
    changes = [journal.Change("Node", "north", name, uid, journal.Action.MODIFIED) for name in (before, after)]
    journal.append(changes, NOW)


def ends(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(charge=None, state=Job.State.SUCCEEDED)
    announce_jobs([job], NOW)


def agree(cache: SchedulerCache) -> None:
    found = cache.refresh(NOW).quota
    assert found is not None
    anew = snapshot.load_runners(snapshot.running_jobs(), found)
    assert {each.job_id: sorted_(each) for each in cache.preemption_candidates()} == {
        each.job_id: sorted_(each) for each in anew
    }
    assert cache.preemption_costs() == {each.job_id: Loss() for each in anew}


def sorted_(runner: AdmittedGang) -> tuple[object, list[object]]:
    return runner.name, sorted((node, sorted(asked.items())) for node, asked in runner.pods)


def test_who_runs_is_known_as_jobs_start_and_end_and_as_their_pods_come_and_move(north):
    first, cache = runs(north, "first", "n1", "n1"), SchedulerCache()
    agree(cache)
    second = runs(north, "second", "n1", held=True)
    agree(cache)
    bind(second, 1, "n2")  # while it is held a place, each look is at its pods
    agree(cache)
    Hold.objects.update(released_at=NOW)
    agree(cache)
    moves(first, 1, "n1", "n2")
    agree(cache)
    ends(first)
    agree(cache)
    assert [each.name for each in cache.preemption_candidates()] == ["a/second"]


def test_whose_place_was_kept_until_its_last_pods_came_is_known_with_them(north):
    late, cache = runs(north, "late", held=True), SchedulerCache()
    agree(cache)
    bind(late, 0, "n1")
    bind(late, 1, "n2")
    Hold.objects.update(released_at=NOW)
    agree(cache)
    assert [len(each.pods) for each in cache.preemption_candidates()] == [2]


def test_nobody_is_read_again_when_nothing_changed(north, django_assert_num_queries):
    cache = SchedulerCache()
    runs(north, "first", "n1", "n2")
    agree(cache)
    with django_assert_num_queries(0):
        assert [len(each.pods) for each in cache.preemption_candidates()] == [2]
