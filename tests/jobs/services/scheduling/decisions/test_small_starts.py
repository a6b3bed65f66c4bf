"""An elastic job that fits nowhere whole starts with as many pods as fit, at least its min, and grows afterwards."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import Event, Pod
from jobs.core.resizing.elastic import ELASTIC
from jobs.models import Job, Work
from jobs.services.scheduling.decisions import lease, small_starts
from quotas.models import QuotaTree
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
    apply_tree(leaf("a", **gpus(4, 8)), leaf("b", **gpus(4, 8)), total={**PLENTY, GPU: 8})
    return cluster


def submit(name: str, workers: int, *, queue: str = "b", elastic: bool = True, **fields) -> None:
    books.apply(resizing.elastic(name, workers, queue=queue, annotations=YES if elastic else {}, **fields))


def runs_whole(name: str, workers: int, queue: str = "a") -> None:
    submit(name, workers, queue=queue, elastic=False)
    resizing.runs(name)


def cycle(seconds: float = 1) -> None:
    books.cycle(timezone.now() + timedelta(seconds=seconds))


def state(name: str) -> str:
    return books.job(name).state


def agree(north) -> None:
    sizes_agree()
    resizing.not_over_committed(north)


def test_it_starts_with_as_many_pods_as_there_is_room_for(north):
    runs_whole("other", 3)
    submit("llama", 7, least=2)
    cycle()
    assert (state("llama"), size("llama"), books.used("root/b")[GPU]) == (Job.State.PLACED, 5, 5)
    assert "worker from 7 to 5: it is elastic" in Event.objects.get(reason="StartsSmall").message
    assert Work.objects.get(name="llama").resize_wanted == 0, "its copy is sent with that size"
    assert books.job("llama").attempt == 1
    agree(north)


def test_it_starts_whole_where_it_fits_whole(north):
    submit("llama", 7, least=2)
    cycle()
    assert (state("llama"), size("llama")) == (Job.State.PLACED, 7)
    assert not Event.objects.filter(reason="StartsSmall").exists()


def test_it_waits_whole_where_not_even_its_min_fits(north):
    runs_whole("other", 5)
    submit("llama", 8, least=4)
    cycle()
    assert (state("llama"), size("llama")) == (Job.State.QUEUED, 8)


def test_it_starts_with_what_its_quota_allows(north):
    apply_tree(leaf("a", **gpus(4, 8)), leaf("b", **gpus(0, 3)), total={**PLENTY, GPU: 8})
    submit("llama", 6, least=2)
    cycle()
    assert (state("llama"), size("llama"), books.used("root/b")[GPU]) == (Job.State.PLACED, 3, 3)
    agree(north)


def test_a_job_that_has_not_opted_in_waits_whole(north):
    runs_whole("other", 3)
    submit("llama", 7, elastic=False)
    cycle()
    assert (state("llama"), size("llama")) == (Job.State.QUEUED, 7)


def test_it_grows_when_there_is_room_again(north):
    QuotaTree.objects.all().delete()
    runs_whole("other", 3, queue="")
    submit("llama", 7, queue="", least=2, most=7)
    resizing.runs("llama")
    assert size("llama") == 5
    books.end("other")
    Pod.objects.filter(job_uid=books.job("other").uid).delete()
    bind("llama")
    cycle(3600)
    assert size("llama") == 7
    agree(north)


def test_of_two_alike_the_first_gets_what_is_there_and_the_other_waits_whole(north):
    runs_whole("other", 3)
    for name in ("first", "second"):
        submit(name, 7, least=2)
    cycle()
    assert [(state(name), size(name)) for name in ("first", "second")] == [
        (Job.State.PLACED, 5),
        (Job.State.QUEUED, 7),
    ]
    agree(north)


def test_in_a_queue_in_strict_order_none_starts_before_the_first(north):
    leaves = (leaf("a", **gpus(4, 8)), leaf("b", **gpus(4, 8)))
    apply_tree(*leaves, total={**PLENTY, GPU: 8}, attributes={"queue-policy": "Block"})
    runs_whole("other", 3)
    submit("head", 7, elastic=False)
    submit("llama", 6, least=2)
    cycle()
    assert (state("head"), state("llama"), size("llama")) == (Job.State.QUEUED, Job.State.QUEUED, 6)


def test_nobody_is_evicted_for_a_job_that_could_start_small(north):
    """Its whole size would be above the min; what is free is enough for a part."""
    runs_whole("other", 4)
    submit("llama", 6, least=2)
    cycle()
    cycle(2)
    assert (state("other"), state("llama"), size("llama")) == (Job.State.RUNNING, Job.State.PLACED, 4)
    agree(north)


def test_a_size_written_before_a_crash_is_placed_by_the_next_cycle(north, monkeypatch):
    runs_whole("other", 3)
    submit("llama", 7, least=2)
    monkeypatch.setattr(small_starts.cycle_requests, "request", lambda: (_ for _ in ()).throw(RuntimeError("killed")))
    with pytest.raises(RuntimeError):
        cycle()
    assert size("llama") == 7, "all of the transaction or nothing"
    monkeypatch.undo()
    cycle(60)
    assert (state("llama"), size("llama")) == (Job.State.PLACED, 5)
    agree(north)


@pytest.mark.parametrize("change", ["suspend", "delete", "resubmit", "lease"])
def test_a_job_that_changed_since_it_was_read_keeps_its_size(north, change):
    runs_whole("other", 3)
    submit("llama", 7, least=2)
    ((*_, start),) = small_starts.load()
    now = timezone.now()
    epoch = lease.acquire("test", now)
    if change == "suspend":
        Job.objects.filter(name="llama").update(suspended=True, state=Job.State.SUSPENDED)
    elif change == "delete":
        Job.objects.filter(name="llama").update(deleting_at=now)
    elif change == "resubmit":
        submit("llama", 8, least=2)
    else:
        epoch -= 1
    assert not small_starts.write(start, epoch, now)
    assert size("llama") == (8 if change == "resubmit" else 7)
