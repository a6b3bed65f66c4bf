"""A worker is killed -9 before and after everything it writes in a reclaim, from the order to the preemptor's copy.

Wherever it dies: what the sweep finds is enough. The victim stands in line again, once; the preemptor has its place; the
ledger is what runs.
"""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.models import Event, Hold, Lease
from jobs.core.life.works import ACTIONABLE
from jobs.models import Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.follow import sweep
from jobs.services.scheduling import loop
from tests.faults.builders import Killer
from tests.support import books
from tests.support.books import GPU
from tests.support.quotas import PLENTY, apply_tree, gpus, leaf, ledger_is_exact
from tests.support.world import World, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
LABEL = "quota.scheduling.alibabacloud.com/name"


@pytest.fixture(scope="module")
def killer(django_db_setup):
    made = Killer("tests.support.reclaim_killer")
    yield made
    made.close()


@pytest.fixture
def member(transactional_db, tmp_path):
    """One member with room for everybody, so that it is the quota that is short; nobody at work but the test."""
    world = World(tmp_path)
    world.still("north", 64)
    apply_tree(leaf("a", **gpus(3, 3)), leaf("b", **gpus(0, 3)), total={**PLENTY, GPU: 3})
    yield world
    for each in world.members.values():
        each.stop()


def job(name: str, queue: str) -> str:
    body = yaml.safe_load(pytorch_job(name))
    body["metadata"]["labels"] = {LABEL: queue}
    return yaml.safe_dump(body)


def borrow_and_claim(number: int) -> Job:
    """The victim runs on what it borrowed; its owner's job has just been submitted."""
    books.apply(job(f"victim-{number}", "b"))
    assert books.cycle() == 1
    victim = books.job(f"victim-{number}")
    dispatcher.push(Work.objects.get(job_uid=victim.uid).pk, timezone.now)
    Job.objects.filter(pk=victim.pk).update(state=Job.State.RUNNING, started_at=timezone.now())
    books.apply(job(f"mine-{number}", "a"))
    return victim


def recover(number: int) -> None:
    """What the beat does once the claim and the lease of the dead have run out: until there is nothing left to do."""
    long_ago = timezone.now() - timedelta(hours=1)
    Work.objects.exclude(claim="").update(claimed_at=long_ago)
    Lease.objects.exclude(holder="").update(expires_at=long_ago)
    for _ in range(8):
        sweep.run(timezone.now())
        Work.objects.filter(state__in=ACTIONABLE).update(due_at=timezone.now())
        for pk in Work.objects.filter(state__in=ACTIONABLE).values_list("pk", flat=True):
            dispatcher.push(pk, timezone.now)
        loop.run(timezone.now)
        if books.job(f"mine-{number}").state == Job.State.DISPATCHED:
            return


def check(member: World, number: int) -> None:
    victim, mine = books.job(f"victim-{number}"), books.job(f"mine-{number}")
    assert (victim.state, victim.charge, victim.cluster, victim.attempt) == (Job.State.QUEUED, None, None, 1)
    assert (mine.state, mine.attempt, mine.charge[GPU]) == (Job.State.DISPATCHED, 1, 3)
    assert member.copies()["north"] == [mine.name]
    again = Event.objects.filter(regarding_uid=str(victim.uid), reason__in=["Reclaimed", "QueuedAgain"])
    assert sorted(again.values_list("reason", "count")) == [("QueuedAgain", 1), ("Reclaimed", 1)]
    assert victim.attempts.get().outcome == "Reclaimed"
    assert books.used("root")[GPU] == 3 and ledger_is_exact()
    assert not Hold.objects.filter(job_uid=victim.uid, released_at__isnull=True).exists()


def forget(member: World, number: int) -> None:
    books.end(f"mine-{number}")
    member.delete(f"victim-{number}")
    member.delete(f"mine-{number}")
    for work in Work.objects.filter(state__in=ACTIONABLE):
        dispatcher.push(work.pk, timezone.now)


def test_it_ends_every_reclaim_alike_whatever_step_the_worker_dies_at(member, killer):
    for step in range(1, 1000):
        victim = borrow_and_claim(step)
        outcome = killer.ask(victim.uid, step)
        assert outcome in ("killed", "done"), outcome
        if outcome == "killed":
            recover(step)
        check(member, step)
        if outcome == "done":
            break
        forget(member, step)
    assert step > 40
