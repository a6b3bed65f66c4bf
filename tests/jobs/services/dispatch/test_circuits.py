"""A member that leaves dispatches unanswered gets probes alone, by whichever worker, until one is answered."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.kube.resources import PYTORCH_JOBS
from fleet.models import Cluster, Event
from fleet.services.clusters import circuits, clusters
from jobs.models import Job, Work
from jobs.services.dispatch import pushing, unreached
from jobs.services.follow import sweep
from jobs.services.lifecycle import works
from tests.support import books
from tests.support.black_hole import swallow
from tests.support.passive import passive_member
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
NOBODY = "https://127.0.0.1:9"
"""Nothing listens there: a connection is refused at once."""
JOBS = 5
SECOND = timedelta(seconds=1)


@pytest.fixture
def member(tmp_path):
    with passive_member(tmp_path) as made:
        yield made


@pytest.fixture
def server(member):
    """Its real address; it is not there any more, and jobs have been placed."""
    server = member.cluster.server
    swallow(member.cluster, NOBODY)
    books.apply(*(pytorch_job(f"job-{i}", workers=0) for i in range(JOBS)))
    books.cycle()
    return server


def push_all(now):
    """As a worker does with the messages of a sweep; returns how many dispatches it tried."""
    before = dict(Work.objects.values_list("pk", "tries"))
    pks = list(works.due(now).order_by("pk").values_list("pk", flat=True))
    for pk in pks:
        pushing.push([pk], lambda: now)
    return sum(tries != before[pk] for pk, tries in Work.objects.values_list("pk", "tries"))


def north():
    return Cluster.objects.get(name="north")


def opened(now):
    assert push_all(now) == 3
    assert north().circuit_opened_at == now
    return now


def test_it_tries_no_more_than_it_takes_to_open_the_circuit(server):
    now = opened(timezone.now())
    assert push_all(now + 9 * SECOND) == 0
    assert Event.objects.filter(reason="CircuitOpened", regarding_name="north").exists()


def test_every_job_that_waits_says_so(server):
    opened(timezone.now())
    reasons = {job.reason["message"] for job in Job.objects.all()}
    assert len(reasons) == 1 and "one is tried every 10 s" in reasons.pop()


def test_it_makes_one_probe_in_each_interval(server):
    now = opened(timezone.now())
    assert push_all(now + 10 * SECOND) == 1
    assert push_all(now + 11 * SECOND) == 0
    assert push_all(now + 20 * SECOND) == 1


def test_two_workers_make_one_probe(server):
    now = opened(timezone.now()) + 10 * SECOND
    pks = works.due(now).values_list("pk", flat=True)
    claimed = [works.claim(pk, now) for pk in list(pks)]
    assert sum(work is not None for work in claimed) == 1
    assert Work.objects.exclude(claim="").count() == 1


def test_a_worker_killed_with_the_probe_delays_the_next_by_one_interval(server):
    now = opened(timezone.now()) + 10 * SECOND
    assert works.claim(works.due(now).first().pk, now) is not None
    assert push_all(now + 10 * SECOND) == 1


def test_the_first_answer_closes_it_and_nothing_waits_any_longer(member, server):
    now = opened(timezone.now()) + 10 * SECOND
    swallow(member.cluster, server)
    push_all(now)
    assert north().circuit_opened_at is None and north().unanswered == 0
    assert Work.objects.filter(state="Applied").count() == JOBS


def test_works_in_their_own_wait_are_due_once_it_closes(member, server):
    now = opened(timezone.now()) + 10 * SECOND
    swallow(member.cluster, server)
    Work.objects.update(due_at=now + 20 * SECOND)
    last = Work.objects.order_by("pk").last()
    Work.objects.filter(pk=last.pk).update(due_at=now)
    pushing.push([last.pk], lambda: now)
    sweep.cluster_changed(member.cluster.pk, now)
    assert works.due(now).count() == JOBS - 1


def test_a_dispatch_that_asks_nothing_of_the_member_is_no_probe(member, server):
    now = opened(timezone.now()) + 10 * SECOND
    work = Work.objects.order_by("pk").first()
    older = Work.objects.create(
        job_uid=work.job_uid, attempt=0, cluster=north(), due_at=now + timedelta(hours=1), created_at=now,
        state="Withdrawing", api_version=work.api_version, kind=work.kind, namespace="default", name=work.name,
    )  # fmt: skip
    Work.objects.filter(pk=work.pk).update(attempt=2, state="Pending", due_at=now)
    Job.objects.filter(uid=work.job_uid).update(attempt=2)
    pushing.push([work.pk], lambda: now)
    assert north().circuit_opened_at is not None
    older.delete()
    assert push_all(now + SECOND) == 1


def test_failures_between_which_the_member_answers_do_not_open_it(member, server):
    now = timezone.now()
    for pk in Work.objects.order_by("pk").values_list("pk", flat=True)[:2]:
        pushing.push([pk], lambda: now)
    assert north().unanswered == 2
    swallow(member.cluster, server)
    pushing.push([Work.objects.filter(tries=0).first().pk], lambda: now)
    assert north().unanswered == 0


def test_a_clock_that_was_set_back_keeps_it_open_no_longer(server):
    now = opened(timezone.now())
    assert push_all(now - timedelta(hours=1)) == 1


def test_new_credentials_close_it(member, server, tmp_path):
    now = opened(timezone.now())
    clusters.renew(north(), yaml.safe_dump(member.kubeconfig), by="test", now=now)
    assert north().circuit_opened_at is None
    assert works.due(now + 5 * SECOND).count() == JOBS


def test_it_closes_when_nothing_is_left_to_be_sent(server):
    now = opened(timezone.now())
    Work.objects.all().delete()
    sweep.run(now + SECOND)
    assert north().circuit_opened_at is None


def test_removals_open_it_and_wait_for_it_as_well(member, server):
    swallow(member.cluster, server)
    push_all(timezone.now())
    assert Work.objects.filter(state="Applied").count() == JOBS
    swallow(member.cluster, NOBODY)
    Work.objects.update(state="Withdrawing", due_at=timezone.now())
    now = opened(timezone.now() + SECOND)
    swallow(member.cluster, server)
    for i in range(4):
        push_all(now + (10 + 10 * i) * SECOND)
        member.collect_garbage(PYTORCH_JOBS)
    assert set(Work.objects.values_list("state", flat=True)) == {"Gone"}


def test_an_error_that_the_member_answers_with_leaves_it_closed(member, server):
    swallow(member.cluster, server)
    Cluster.objects.update(access={**north().access, "token": "expired"})
    push_all(timezone.now())
    assert north().unanswered == 0


def test_answers_of_two_workers_close_it_once(server):
    now = opened(timezone.now())
    for _ in range(2):
        circuits.answered(north(), now + SECOND, at=now + SECOND)
    assert Event.objects.get(reason="CircuitClosed").count == 1


@pytest.mark.parametrize(("answered_after_s", "is_open"), [(-1, True), (1, False)])
def test_an_answer_from_before_the_failures_that_opened_it_leaves_it_open(server, answered_after_s, is_open):
    now = opened(timezone.now())
    late = Work.objects.select_related("cluster").order_by("pk").last()
    late.answered_at = now + answered_after_s * SECOND
    unreached.after_contact(late, now + 2 * SECOND)
    assert (north().circuit_opened_at is not None) == is_open


def test_an_answer_closes_one_that_a_clock_opened_which_was_an_hour_ahead(server):
    now = opened(timezone.now()) - timedelta(hours=1)
    circuits.answered(north(), now, at=now)
    assert north().circuit_opened_at is None
