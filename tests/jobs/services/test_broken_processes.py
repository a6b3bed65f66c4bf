"""What a process holds when it breaks: it lets go of it at once, and nobody waits for the lease or the claim to run out."""

import pytest

from fleet.models import Lease
from jobs.models import Work
from jobs.services.dispatch import dispatcher
from jobs.services.lifecycle import cycle_requests, works
from jobs.services.scheduling import loop
from tests.jobs.services.broken import Broken, breaks_at
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_releases_the_schedulers_lease_when_a_cycle_raises():
    books.a_cluster()
    books.apply(pytorch_job("train", workers=0))
    with pytest.raises(Broken):
        loop.run(breaks_at(2))
    assert Lease.objects.get(name=cycle_requests.LEASE).holder == ""
    assert books.cycle() == 1


def test_it_gives_a_claim_back_when_a_push_raises():
    books.a_cluster()
    books.apply(pytorch_job("train", workers=0))
    books.cycle()
    work = Work.objects.get()
    with pytest.raises(Broken):
        dispatcher.push(work.pk, breaks_at(2))
    work.refresh_from_db()
    assert work.claim == "" and "error" in work.message
    assert works.due(work.due_at).filter(pk=work.pk).exists()
