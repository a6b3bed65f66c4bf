"""A divided job and its quota: charged once and whole, given back when no share has a pod left, taken back whole."""

import pytest
import yaml
from django.utils import timezone

from jobs.core.failover.rules import Outcome
from jobs.models import Job, Work
from jobs.services.failover import division
from jobs.services.lifecycle.accounting import charges
from jobs.services.scheduling import loop
from quotas.services import trees
from tests.jobs.services.scheduling.builders import LABEL, WHOLE, job
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import GPU, team
from tests.support.division import BY_ROOM, FAILED, LOST, NO_FAILOVER, report_share, sweep_job

pytestmark = pytest.mark.django_db


def swept(policy: str = BY_ROOM) -> Job:
    """4 pods on north and 2 on south, all of them b's, which is promised 3."""
    books.a_cluster("north", gpus=4)
    books.a_cluster("south", gpus=2)
    root = quota("root", WHOLE, WHOLE, team("a", 3, 6), team("b", 3, 6))
    trees.apply(manifest(root), by="system", now=timezone.now())
    body = yaml.safe_load(sweep_job(pods=6))
    body["metadata"]["labels"] = {LABEL: "b"}
    books.apply(policy, yaml.safe_dump(body))
    assert books.cycle() == 1
    books.sent()
    return books.job("sweep")


def test_it_is_charged_whole():
    assert swept().charge[GPU] == 6
    assert books.used("root/b")[GPU] == 6


def test_it_stays_charged_whole_while_a_share_moves():
    division.leave(swept(), 2, Outcome.LOST, LOST, timezone.now())
    charges.release(timezone.now())
    books.cycle()
    assert books.job("sweep").state == Job.State.MOVING and books.used("root/b")[GPU] == 6


def test_it_gives_its_quota_back_when_the_shares_it_stops_are_gone():
    swept(NO_FAILOVER)
    report_share(1, FAILED)
    charges.release(timezone.now())
    assert (books.job("sweep").state, books.used("root/b")[GPU]) == ("Failed", 6)
    Work.objects.filter(attempt=2).update(state=Work.State.GONE)
    charges.release(timezone.now())
    assert books.job("sweep").charge is None


def test_it_is_taken_back_whole_and_queued_again():
    swept()
    Job.objects.update(state=Job.State.RUNNING, started_at=timezone.now())
    books.apply(job("mine", "a"))
    books.cycle()
    assert books.job("sweep").state == Job.State.RECLAIMING
    assert set(Work.objects.values_list("state", flat=True)) == {"Suspending"}
    books.gone("sweep")
    loop.advance_evictions(timezone.now())
    assert (books.job("sweep").state, books.job("sweep").charge) == (Job.State.QUEUED, None)
    books.cycle()
    assert books.job("mine").cluster.name == "north" and books.used("root/b").get(GPU, 0) == 0
