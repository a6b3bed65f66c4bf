"""A charge or a hold that cannot be read ends no cycle: its job's total counts instead, and it is said where people look."""

import pytest
from django.utils import timezone

from fleet.models import Event, Hold
from jobs import snapshot_rows
from jobs.models import Job
from jobs.services.inspect import explaining
from jobs.services.scheduling import loop, unreadable_rows
from jobs.services.submission.changes import actions
from quotas.services import trees
from tests.jobs.services import lost_cluster
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import GPU, team
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
WHOLE = {"cpu": 10**5, "memory": "900000Gi", GPU: 1000, "kube-queue/max-jobs": 1000}
CHARGES = ["text", [1], {GPU: "three"}, {GPU: None}, {GPU: -1}, {GPU: 2**62}, {GPU: True}, {"": {}}]
HOLDS = [
    {"amounts": "text"},
    {"amounts": {GPU: "3"}},
    {"amounts": [], "nodes": "x"},
    {"nodes": [[{GPU: 1}]]},
    {"nodes": [1]},
    {"nodes": [[{GPU: 1}, [2]]]},
]
QUEUED = POLICY.replace("  propagateDeps: true", "  suspension: {scheduling: true}\n  propagateDeps: true")


@pytest.fixture(autouse=True)
def no_memory_of_another_test():
    loop._idle_caches.clear()
    snapshot_rows.take_unread()


def a_fleet(gpus: int = 8, limit: int = 8) -> None:
    books.a_cluster(gpus=gpus)
    leaf = team("a", 0, limit, namespaces=["default"])
    trees.apply(manifest(quota("root", WHOLE, WHOLE, leaf)), by="system", now=timezone.now())


def placed(name: str, workers: int = 2) -> None:
    books.apply(QUEUED, pytorch_job(name, workers=workers))
    lost_cluster.cycle()
    assert books.job(name).state == "Placed"


@pytest.mark.parametrize("charge", CHARGES, ids=str)
def test_a_bad_charge_counts_as_the_jobs_total_and_others_are_placed(charge):
    a_fleet(gpus=80)
    placed("bad")
    Job.objects.filter(name="bad").update(charge=charge)
    books.apply(QUEUED, pytorch_job("good"), pytorch_job("third"))
    lost_cluster.cycle()
    # Three of eight GPUs are the bad one's, three the good one's: the third does not fit into the quota.
    assert [books.job(name).state for name in ("good", "third")] == ["Placed", "Queued"]
    event = Event.objects.get(reason=unreadable_rows.EVENT)
    assert event.message.startswith("its charge has")
    assert unreadable_rows.problem().startswith("1 job has a charge or hold that cannot be read")


@pytest.mark.parametrize("hold", HOLDS, ids=str)
def test_a_bad_hold_counts_as_the_jobs_total_and_others_are_placed(hold):
    a_fleet(limit=100)
    placed("bad")
    Hold.objects.update(**hold)
    books.apply(QUEUED, pytorch_job("good"), pytorch_job("third"))
    lost_cluster.cycle()
    assert [books.job(name).state for name in ("good", "third")] == ["Placed", "Queued"]
    assert "its hold on north has" in Event.objects.get(reason=unreadable_rows.EVENT).message
    assert explaining.explain_job(books.job("third"), timezone.now())


def test_a_hold_of_a_job_whose_total_is_bad_too_closes_its_cluster_and_no_other():
    a_fleet(limit=100)
    placed("bad")
    Hold.objects.update(amounts="x")
    Job.objects.filter(name="bad").update(total="x", charge="x")
    books.a_cluster("south")
    books.apply(QUEUED, pytorch_job("good"))
    lost_cluster.cycle()
    assert str(books.job("good").cluster) == "south"


def test_it_is_said_once_for_each_reading_and_is_over_when_the_row_is_mended():
    a_fleet()
    placed("bad")
    charge = books.job("bad").charge
    Job.objects.filter(name="bad").update(charge="x")
    books.apply(QUEUED, pytorch_job("good"))
    lost_cluster.cycle()
    for _ in range(3):
        loop.run(timezone.now)
    assert Event.objects.get(reason=unreadable_rows.EVENT).count == 1
    Job.objects.filter(name="bad").update(charge=charge)
    assert unreadable_rows.problem() == ""


def test_suspending_the_job_mends_both_rows():
    a_fleet()
    placed("bad")
    Job.objects.filter(name="bad").update(charge="x")
    Hold.objects.update(amounts="x")
    actions.suspend(books.job("bad"), by="test", now=timezone.now())
    actions.resume(books.job("bad"), by="test", now=timezone.now())
    lost_cluster.cycle()
    assert books.job("bad").state == "Placed" and snapshot_rows.unreadable() == {}


def test_the_system_page_names_it(as_admin):
    a_fleet()
    placed("bad")
    Job.objects.filter(name="bad").update(charge="x")
    assert "cannot be read" in str(as_admin.get("/api/v1/system/").json())
