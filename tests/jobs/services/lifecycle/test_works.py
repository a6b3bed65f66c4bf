"""Claims on works: one at a time, outlived by nobody, not stopped by a clock that jumps."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import Cluster, Hold
from jobs.core.life.works import WorkEvent
from jobs.models import Job, Work
from jobs.services.lifecycle import works

pytestmark = pytest.mark.django_db
NOW = timezone.now()
HOUR = timedelta(hours=1)


@pytest.fixture
def work():
    cluster = Cluster.objects.create(name="north", access={}, state_since=NOW, joined_at=NOW)
    names = {"api_version": "batch/v1", "kind": "Job", "namespace": "default", "name": "prep"}
    uid = "11111111-1111-4111-8111-111111111111"
    return Work.objects.create(job_uid=uid, attempt=1, cluster=cluster, due_at=NOW, created_at=NOW, **names)


def test_it_gives_a_work_to_one_claimant_only(work):
    assert works.claim(work.pk, NOW) is not None
    assert works.claim(work.pk, NOW) is None


def test_it_takes_a_silent_claimant_for_dead(work):
    works.claim(work.pk, NOW)
    assert works.claim(work.pk, NOW + HOUR) is not None


def test_it_does_not_record_for_a_claimant_that_was_taken_for_dead(work):
    slow = works.claim(work.pk, NOW)
    works.claim(work.pk, NOW + HOUR)
    assert not works.advance(slow, WorkEvent.BEGUN)


def test_a_claimant_that_was_taken_for_dead_gives_back_nothing(work):
    slow = works.claim(work.pk, NOW)
    works.claim(work.pk, NOW + HOUR)
    before = Work.objects.values().get()
    for wait_s in (None, 0):
        works.give_back(slow, NOW + HOUR, message="no answer", wait_s=wait_s)
    assert Work.objects.values().get() == before


def test_it_does_not_record_over_a_change_of_mind(work):
    mine = works.claim(work.pk, NOW)
    Work.objects.update(state=Work.State.WITHDRAWING)
    assert not works.advance(mine, WorkEvent.BEGUN)


def test_it_writes_nothing_to_the_member_after_a_change_of_mind(work):
    mine = works.claim(work.pk, NOW)
    works.renew(mine, NOW)
    Work.objects.update(state=Work.State.WITHDRAWING)
    for late in (timedelta(), timedelta(seconds=25)):
        with pytest.raises(works.ClaimLost):
            works.renew(mine, NOW + late)


def test_a_work_that_is_claimed_is_withdrawn_under_its_claim_and_one_that_is_not_is_dropped(work):
    """A claim on a work that is over would never be given back, if its claimant is dead."""
    owner = Job(uid=work.job_uid, attempt=1)
    works.claim(work.pk, NOW)
    assert works.withdraw(owner, NOW) == 1
    assert Work.objects.get().state == Work.State.WITHDRAWING
    Work.objects.update(state=Work.State.PENDING, claim="")
    assert works.withdraw(owner, NOW) == 0
    assert Work.objects.get().state == Work.State.GONE


@pytest.mark.parametrize(
    ("state", "cluster", "is_due"),
    [
        ("Withdrawing", "Unknown", False),
        ("Suspending", "Unknown", False),
        ("Withdrawing", "NotReady", True),
        ("Withdrawing", "Ready", True),
        ("Pending", "Unknown", True),
        ("Sending", "Unknown", True),
    ],
)
def test_it_ends_nothing_in_a_member_that_does_not_answer(work, state, cluster, is_due):
    Work.objects.update(state=state)
    Cluster.objects.update(state=cluster)
    assert works.due(NOW).exists() is is_due
    assert (works.claim(work.pk, NOW) is not None) is is_due


def test_it_waits_longer_with_each_try(work):
    mine = works.claim(work.pk, NOW)
    works.give_back(mine, NOW, message="away")
    assert works.claim(work.pk, NOW) is None
    assert works.claim(work.pk, NOW + timedelta(seconds=1)) is not None


def test_it_tries_at_once_what_became_due_during_the_claim(work):
    Cluster.objects.update(state=Cluster.State.READY)
    Work.objects.update(state=Work.State.WITHDRAWING, tries=9)
    mine = works.claim(work.pk, NOW)
    gone = NOW + timedelta(milliseconds=100)
    Work.objects.update(due_at=gone)
    works.give_back(mine, gone, message="north is still removing it")
    assert works.claim(work.pk, gone) is not None


def test_it_does_not_count_a_wait_of_known_length_as_a_failure(work):
    for _ in range(9):
        Work.objects.update(due_at=NOW)
        works.give_back(works.claim(work.pk, NOW), NOW, message="2 pods are still saving their work", wait_s=1.0)
    Work.objects.update(due_at=NOW)
    works.give_back(works.claim(work.pk, NOW), NOW, message="away")
    assert works.claim(work.pk, NOW + timedelta(seconds=1)) is not None


def test_it_is_not_stopped_by_a_clock_that_jumped_back(work):
    works.claim(work.pk, NOW)
    Work.objects.update(due_at=NOW)
    assert works.claim(work.pk, NOW - HOUR) is not None


def test_it_gives_back_the_hold_of_a_copy_that_was_never_sent(work):
    Hold.objects.create(cluster=work.cluster, job_uid=work.job_uid, attempt=1, amounts={}, pods=1, made_at=NOW)
    assert works.withdraw(Job(uid=work.job_uid, attempt=1), NOW) == 0
    assert Hold.objects.get().released_at == NOW


def test_it_keeps_the_hold_of_a_copy_that_may_be_in_the_member(work):
    Hold.objects.create(cluster=work.cluster, job_uid=work.job_uid, attempt=1, amounts={}, pods=1, made_at=NOW)
    Work.objects.update(state=Work.State.APPLIED)
    assert works.withdraw(Job(uid=work.job_uid, attempt=1), NOW) == 1
    assert Hold.objects.get().released_at is None
