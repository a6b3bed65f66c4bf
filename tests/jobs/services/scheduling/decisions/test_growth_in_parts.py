"""What a reclaim took from an elastic job comes back in parts: at once while the reclaim restarts it, else when it pays."""

from datetime import datetime, timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from jobs.core.resizing import pace
from jobs.core.resizing.elastic import ELASTIC
from jobs.models import Attempt, Job
from jobs.services.lifecycle import sizes
from jobs.services.submission.changes import resizing as changes
from tests.jobs.services import resizing
from tests.jobs.services.resizing import bind, size, sizes_agree
from tests.support import books
from tests.support.books import GPU
from tests.support.quotas import PLENTY, apply_tree, gpus, leaf

pytestmark = pytest.mark.django_db
YES = {ELASTIC: "true"}


@pytest.fixture(autouse=True)
def north():
    cluster = books.a_cluster("north", 8)
    apply_tree(leaf("a", **gpus(0, 8)), leaf("b", **gpus(0, 8)), total={**PLENTY, GPU: 8})
    return cluster


def running(name: str, workers: int, **fields) -> Job:
    """It started an hour ago, within 10 s."""
    books.apply(resizing.elastic(name, workers, queue="a", **{"annotations": YES, **fields}))
    job = resizing.runs(name)
    long_ago = timezone.now() - timedelta(hours=1)
    Attempt.objects.filter(job=job).update(placed_at=long_ago - timedelta(seconds=10), started_at=long_ago, sizes=None)
    return job


def loses(name: str, left: int, now: datetime, *, free: int) -> None:
    """So many of its workers are left after a reclaim, and so many GPUs are free beside them."""
    with transaction.atomic():
        job = Job.objects.select_related("cluster").select_for_update(of=("self",)).get(name=name)
        former = sizes.asked_for(job)
        for wanted in ({"worker": left}, former):
            changes.request(job, wanted, by="the reclaim of n1", now=now)
    has_free(name, free)


def has_free(name: str, free: int) -> None:
    node = books.job(name).cluster.nodes.get(name="node")
    node.allocatable = {**node.allocatable, GPU: size(name) + free}
    node.save()
    bind(name)


def wanted(name: str) -> int | None:
    resize = books.job(name).resize
    return resize and resize["sizes"]["worker"]


def test_it_takes_what_is_free_while_a_reclaim_restarts_it_and_asks_for_the_rest_still():
    running("llama", 6, most=6)
    now = timezone.now()
    loses("llama", 3, now, free=2)
    books.cycle(now + timedelta(seconds=3))
    assert (size("llama"), wanted("llama"), books.used("root/a")[GPU]) == (4, 6, 4)  # half of the 3 that it lost
    bind("llama")
    books.cycle(now + timedelta(seconds=5))
    assert (size("llama"), wanted("llama")) == (4, 6), "once"
    sizes_agree()


def test_it_gets_all_of_it_without_a_rest_as_soon_as_there_is_room():
    running("llama", 6, most=6)
    now = timezone.now()
    loses("llama", 3, now, free=1)
    books.cycle(now + timedelta(seconds=2))
    assert (size("llama"), wanted("llama")) == (4, 6)
    has_free("llama", 2)
    books.cycle(now + timedelta(seconds=4))
    assert (size("llama"), wanted("llama")) == (6, None)


@pytest.mark.parametrize(("after_s", "grows"), [(45, False), (59, True)])
def test_a_part_waits_for_five_times_the_restart_cost_once_the_restart_is_over(after_s, grows):
    """Four run, and two of which one comes back: for 5 x 12 s, since its last change was 3 s ago."""
    running("llama", 6, most=6)
    now = timezone.now()
    loses("llama", 4, now, free=0)
    books.cycle(now + timedelta(seconds=2))
    assert size("llama") == 4
    has_free("llama", 1)
    books.cycle(now + timedelta(seconds=after_s + 2))
    assert (size("llama"), wanted("llama")) == (5 if grows else 4, 6)


def test_after_a_second_reclaim_it_asks_for_the_size_before_the_first():
    running("llama", 6, most=6)
    now = timezone.now()
    loses("llama", 3, now, free=1)
    books.cycle(now + timedelta(seconds=2))
    bind("llama")
    loses("llama", 2, now + timedelta(seconds=30), free=0)
    assert (size("llama"), wanted("llama")) == (2, 6)


def test_a_job_that_is_not_elastic_gets_all_that_it_asks_for_or_nothing():
    running("llama", 6, most=6, annotations={})
    now = timezone.now()
    loses("llama", 3, now, free=2)
    books.cycle(now + timedelta(seconds=2))
    assert (size("llama"), wanted("llama")) == (3, 6)


def test_another_job_grows_on_another_cluster_while_one_waits_for_what_it_lost():
    books.a_cluster("south", 4)
    running("llama", 6, most=6)
    loses("llama", 3, timezone.now(), free=0)
    running("bert", 2, most=4)
    assert books.job("bert").cluster.name == "south"
    resizing.cycle()
    assert (size("llama"), size("bert")) == (3, 4)


@pytest.mark.parametrize(("size", "wanted", "rests"), [(2, 4, 5), (5, 6, 5), (30, 31, 30), (30, 36, 5), (31, 32, 31)])
def test_more_pods_have_to_make_up_for_the_restart_of_all(size, wanted, rests):
    now, cost = timezone.now(), timedelta(seconds=60)
    assert pace.grows_from(now, cost, size, wanted) == now + rests * cost


def test_only_the_first_growth_after_a_reclaim_costs_no_restart_of_its_own():
    asked, cost, soon = timezone.now(), timedelta(seconds=60), timedelta(seconds=20)
    assert pace.restarts_anyway(asked, asked, cost, asked + soon)
    assert not pace.restarts_anyway(asked, asked, cost, asked + cost), "the restart is over"
    assert not pace.restarts_anyway(asked, asked + soon, cost, asked + soon), "it has grown since"
    assert not pace.restarts_anyway(asked, asked - soon, cost, asked + soon), "a person asked: nothing restarts it"
