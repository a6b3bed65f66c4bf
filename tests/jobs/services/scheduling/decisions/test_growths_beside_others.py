"""What a growth that waits keeps from others: for a time, on its own cluster; and that it takes nothing promised to others."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.models import ClockStep, Event
from jobs.core.resizing import pace
from jobs.models import Job
from tests.jobs.services import resizing
from tests.jobs.services.resizing import bind, size
from tests.jobs.services.scheduling.decisions.growing import has_free, loses, running, wanted
from tests.support import books
from tests.support.books import GPU
from tests.support.quotas import PLENTY, apply_tree, gpus, leaf
from tests.support.world import POLICY

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def north():
    cluster = books.a_cluster("north", 8)
    apply_tree(leaf("a", **gpus(0, 8)), leaf("b", **gpus(0, 8)), total={**PLENTY, GPU: 8})
    return cluster


def overdue() -> list[str]:
    return list(Event.objects.filter(reason="GrowthOverdue").values_list("message", flat=True))


def test_a_growth_holds_up_others_for_an_hour_and_then_says_so_once():
    """Three of its GPUs never come back; one that is free is for bert, which grows by itself."""
    now = timezone.now()
    running("llama", 4, most=8, annotations={})
    resizing.resize("llama", 8, now=now)
    running("bert", 1, most=4)
    books.cycle(now + pace.HOLDS_UP_FOR - timedelta(minutes=2))
    assert (size("llama"), size("bert"), overdue()) == (4, 1, [])
    for seconds in (1, 5):
        books.cycle(now + pace.HOLDS_UP_FOR + timedelta(seconds=seconds))
    assert (size("llama"), size("bert"), wanted("llama")) == (4, 4, 8)
    [message] = overdue()
    assert "worker from 4 to 8 has waited for 1 h on north" in message


def test_a_growth_that_is_overdue_is_made_as_soon_as_there_is_room():
    now = timezone.now()
    running("llama", 4, most=8, annotations={})
    resizing.resize("llama", 8, now=now)
    has_free("llama", 2)
    books.cycle(now + 2 * pace.HOLDS_UP_FOR)
    has_free("llama", 4)
    books.cycle(now + 2 * pace.HOLDS_UP_FOR + timedelta(seconds=1))
    assert (size("llama"), wanted("llama")) == (8, None)


@pytest.mark.parametrize("ahead", [timedelta(seconds=30), timedelta(days=1)])
def test_a_growth_of_a_time_to_come_holds_up_others_only_where_no_clock_was_set_back(ahead):
    now = timezone.now()
    assert pace.holds_up(now + ahead, now) is (ahead < timedelta(minutes=1))


def test_an_elastic_job_gets_nothing_back_that_is_the_min_of_another_queue():
    """It had 6 of 8 while no min was stated. Now 4 are promised to b: of the 3 that it lost it gets one."""
    running("llama", 6, most=6)
    now = timezone.now()
    loses("llama", 3, now, free=5)
    apply_tree(leaf("a", **gpus(0, 8)), leaf("b", **gpus(4, 8)), total={**PLENTY, GPU: 8})
    for seconds in (2, 300, 600):
        books.cycle(now + timedelta(seconds=seconds))
        bind("llama")
    assert (size("llama"), wanted("llama"), books.used("root/a")[GPU]) == (4, 6, 4)
    assert "min of another queue than root/a" in books.job("llama").resize["reason"]["message"]


def test_a_growth_is_not_said_to_have_waited_for_time_that_a_step_of_the_clock_left_out():
    now, hour = timezone.now(), pace.HOLDS_UP_FOR
    running("llama", 4, most=8, annotations={})
    resizing.resize("llama", 8, now=now)
    has_free("llama", 2)
    ClockStep.objects.create(before=now + timedelta(seconds=5), after=now + hour, by=hour, noted_at=now + hour)
    books.cycle(now + hour + timedelta(minutes=1))
    assert overdue() == [] and not books.job("llama").resize.get("overdue")
    books.cycle(now + 2 * hour + timedelta(seconds=5))
    assert len(overdue()) == 1


def test_a_name_that_reads_like_a_reclaim_is_a_persons_still():
    apply_tree(leaf("a", **gpus(0, 8)), leaf("b", **gpus(4, 8)), total={**PLENTY, GPU: 8})
    running("llama", 3, most=6)
    resizing.resize("llama", 6)
    row = books.job("llama")
    Job.objects.filter(pk=row.pk).update(resize={**row.resize, "by": "the reclaim of x"})
    resizing.cycle()
    assert (size("llama"), wanted("llama")) == (6, None)


def test_what_a_person_asks_for_may_be_the_min_of_another_queue_as_what_is_submitted():
    apply_tree(leaf("a", **gpus(0, 8)), leaf("b", **gpus(4, 8)), total={**PLENTY, GPU: 8})
    running("llama", 3, most=6)
    resizing.resize("llama", 6)
    resizing.cycle()
    assert (size("llama"), wanted("llama")) == (6, None)


def on(cluster: str, name: str) -> str:
    """A policy that selects one job, for one cluster alone."""
    policy = yaml.safe_load(POLICY)
    policy["metadata"]["name"] = f"only-{cluster}"
    policy["spec"]["resourceSelectors"] = [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": name}]
    policy["spec"]["placement"]["clusterAffinity"] = {"clusterNames": [cluster]}
    return yaml.safe_dump(policy)


def test_a_gang_that_may_not_use_a_cluster_holds_up_no_growth_there():
    running("llama", 2, most=4)
    books.a_cluster("south", 2)
    books.apply(on("south", "big"), resizing.elastic("big", 4, least=4, most=4, queue="b"))
    resizing.cycle()
    resizing.cycle()
    assert (size("llama"), books.job("big").state) == (4, Job.State.QUEUED)


def test_a_gang_that_could_use_it_holds_it_up_still():
    running("llama", 2, most=4)
    books.apply(on("north", "big"), resizing.elastic("big", 7, least=7, most=7, queue="b"))
    resizing.cycle()
    resizing.cycle()
    assert (size("llama"), books.job("big").state) == (2, Job.State.QUEUED)
