"""What a reclaim took from an elastic job comes back in parts: at once while the reclaim restarts it, else when it pays."""

from datetime import datetime, timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from jobs.core.resizing import pace
from jobs.models import Job, Work
from jobs.services.scheduling.decisions import growth
from tests.jobs.services import resizing
from tests.jobs.services.resizing import bind, size, sizes_agree
from tests.jobs.services.scheduling.decisions.growing import has_free, loses, running, wanted
from tests.support import books
from tests.support.books import GPU
from tests.support.quotas import PLENTY, apply_tree, gpus, leaf

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def north():
    cluster = books.a_cluster("north", 8)
    apply_tree(leaf("a", **gpus(0, 8)), leaf("b", **gpus(0, 8)), total={**PLENTY, GPU: 8})
    return cluster


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


# parts that cost a restart: only of what no other job has a use or a right for


def test_it_takes_no_part_of_what_is_promised_to_another_queue():
    apply_tree(leaf("a", **gpus(0, 8)), leaf("b", **gpus(2, 8)), total={**PLENTY, GPU: 8})
    running("llama", 6, most=8)
    asks_for("llama", 8, free=1)
    books.cycle(timezone.now() + timedelta(seconds=300))
    assert (size("llama"), wanted("llama")) == (6, 8)


def test_it_leaves_what_becomes_free_to_a_waiting_gang():
    running("llama", 6, most=6)
    now = timezone.now()
    loses("llama", 2, now, free=0)
    books.apply(resizing.elastic("big", 3, least=3, most=3, queue="a"))
    for free, state in ((1, Job.State.QUEUED), (2, Job.State.QUEUED), (3, Job.State.PLACED)):
        has_free("llama", free)
        books.cycle(now + timedelta(seconds=100 + 200 * free))
        assert (size("llama"), books.job("big").state) == (2, state)


def test_it_takes_no_part_of_what_an_earlier_growth_waits_for():
    running("first", 2, most=4, annotations={})
    running("llama", 3, most=8)
    now = timezone.now()
    asks_for("first", 4, free=1, at=now - timedelta(seconds=1))
    asks_for("llama", 6, free=1)
    books.cycle(now + timedelta(seconds=300))
    assert (size("first"), size("llama")) == (2, 3)


def test_it_takes_no_other_part_while_pods_of_the_last_one_are_missing():
    running("llama", 4, most=8)
    now = timezone.now()
    asks_for("llama", 8, free=3)
    books.cycle(now + timedelta(seconds=300))
    assert size("llama") == 6
    Work.objects.update(resize_done=F("resize_wanted"))
    books.cycle(now + timedelta(hours=1))
    assert size("llama") == 6
    has_free("llama", 1)
    books.cycle(now + timedelta(hours=1))
    assert size("llama") == 7


def test_it_takes_parts_in_cycles_alone_that_leave_nothing_else_to_be_done():
    running("llama", 4, most=8)
    asks_for("llama", 8, free=3)
    later = timezone.now() + timedelta(seconds=300)
    [busy], [idle] = (growth.load(later, idle=idle) for idle in (False, True))
    assert (busy.sizes, busy.parts) == ({"worker": 8}, ())
    assert [part.sizes for part in idle.parts] == [{"worker": 6}, {"worker": 5}]


def test_it_takes_the_part_that_costs_no_restart_although_another_gang_waits():
    running("llama", 6, most=6)
    now = timezone.now()
    loses("llama", 3, now, free=1)
    books.apply(resizing.elastic("big", 2, least=2, most=2, queue="a"))
    books.cycle(now + timedelta(seconds=2))
    assert (size("llama"), books.job("big").state) == (4, Job.State.QUEUED)


def test_what_is_taken_from_it_for_another_it_asks_for_no_more():
    """It has 6 and asks for 8; two are taken for a gang within its min: it asks for as many more as before, not for these."""
    apply_tree(leaf("a", **gpus(0, 8)), leaf("b", **gpus(2, 8)), total={**PLENTY, GPU: 8})
    running("llama", 6, most=8)
    asks_for("llama", 8, free=0)
    books.apply(resizing.elastic("bert", 2, queue="b", most=2))
    now = timezone.now()
    books.cycle(now + timedelta(seconds=1))
    assert (size("llama"), wanted("llama")) == (4, 6)
    bind("llama")
    books.cycle(now + timedelta(seconds=2))
    assert (size("llama"), books.job("bert").state) == (4, Job.State.PLACED)
    sizes_agree()


def asks_for(name: str, workers: int, *, free: int, at: datetime | None = None) -> None:
    """A person wants so many, and so many GPUs are free beside those of all jobs."""
    resizing.resize(name, workers, now=at)
    has_free(name, free)
