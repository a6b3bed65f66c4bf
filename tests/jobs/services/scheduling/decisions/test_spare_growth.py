"""Free capacity goes to elastic jobs: toward max, beside what is promised to others and what waiting jobs could use."""

from copy import deepcopy
from datetime import timedelta

import pytest
import yaml
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.models import Cluster, Event, Hold, Pod
from jobs.core.resizing.elastic import ELASTIC
from jobs.models import Attempt, Job
from jobs.services.scheduling.decisions import growth
from quotas.models import QuotaTree
from tests.jobs.services import resizing
from tests.jobs.services.resizing import bind, order, size, sizes_agree
from tests.support import books
from tests.support.books import GPU
from tests.support.examples import examples
from tests.support.quotas import PLENTY, apply_tree, gpus, leaf

pytestmark = pytest.mark.django_db
YES = {ELASTIC: "true"}


@pytest.fixture
def north():
    cluster = books.a_cluster("north", 8)
    apply_tree(leaf("a", **gpus(2, 8)), leaf("b", **gpus(2, 8)), total={**PLENTY, GPU: 8})
    return cluster


def running(name: str = "llama", workers: int = 2, *, queue: str = "b", **fields) -> Job:
    books.apply(resizing.elastic(name, workers, queue=queue, annotations=YES, **fields))
    job = resizing.runs(name)
    rested(name)
    return job


def rested(name: str) -> None:
    """It started long ago, within 10 s, and has not been resized since."""
    long_ago = timezone.now() - timedelta(hours=1)
    Attempt.objects.filter(job__name=name).update(
        placed_at=long_ago - timedelta(seconds=10), started_at=long_ago, sizes=None
    )


def cycle(seconds: float = 1) -> None:
    books.cycle(timezone.now() + timedelta(seconds=seconds))


def test_it_grows_with_what_no_other_queue_is_promised(north):
    running(workers=2)
    cycle()
    cycle()
    assert (size("llama"), books.used("root/b")[GPU]) == (5, 5)  # 2, and half of the 6 to its max
    bind("llama")
    rested("llama")
    cycle()
    assert (size("llama"), books.used("root/b")[GPU]) == (6, 6)  # 2 are promised to a
    bind("llama")
    rested("llama")
    cycle()
    assert size("llama") == 6
    sizes_agree()
    resizing.not_over_committed(north)


def test_it_never_grows_above_its_max(north):
    running(workers=2, most=3)
    cycle()
    assert size("llama") == 3
    assert "worker from 2 to 3, on north: it is elastic" in Event.objects.get(reason="Resized").message
    bind("llama")
    rested("llama")
    cycle()
    assert (size("llama"), order("llama").resize_wanted) == (3, 1)


@pytest.mark.parametrize(
    ("cost", "since", "grows"),
    [
        (10, 55, False),
        (10, 65, True),
        (30, 140, False),
        (30, 160, True),
        pytest.param(10, -3600, True, id="clock set back"),
    ],
)
def test_it_rests_for_five_times_its_restart_cost(north, cost, since, grows):
    running(workers=2, most=3)
    now = timezone.now()
    started = now - timedelta(seconds=since)
    Attempt.objects.update(placed_at=started - timedelta(seconds=cost), started_at=started)
    Job.objects.filter(name="llama").update(started_at=started)
    books.cycle(now)
    assert (size("llama") == 3) is grows


def test_it_does_not_grow_with_what_a_waiting_gang_needs_more_of(north):
    """The gang of 7 fits nowhere beside it; with another pod it would wait longer."""
    running(workers=2)
    books.apply(resizing.elastic("big", 7, queue="a"))
    cycle()
    cycle()
    assert (size("llama"), books.job("big").state) == (2, Job.State.QUEUED)


def test_it_grows_beside_a_gang_that_waits_for_a_limit_of_its_own(north):
    apply_tree(leaf("a", **gpus(0, 2)), leaf("b", **gpus(2, 8)), total={**PLENTY, GPU: 8})
    running("limited", 2, queue="a", most=2)
    books.apply(resizing.elastic("waits", 1, queue="a"))
    running(workers=2, most=4)
    cycle()
    assert (size("llama"), books.job("waits").state) == (4, Job.State.QUEUED)


def test_a_job_that_has_not_opted_in_does_not_grow(north):
    books.apply(resizing.elastic("llama", 2, queue="b"))
    resizing.runs("llama")
    rested("llama")
    cycle()
    assert size("llama") == 2


def test_it_grows_without_any_quota(north):
    QuotaTree.objects.all().delete()
    books.apply(resizing.elastic("llama", 2, annotations=YES))
    resizing.runs("llama")
    rested("llama")
    cycle()
    assert size("llama") == 8
    sizes_agree()


def test_what_it_got_is_not_taken_back_before_something_happens(north):
    running(workers=2)
    cycle()
    grown = size("llama")
    for _ in range(3):
        bind("llama")
        cycle()
        assert size("llama") >= grown
    assert not Job.objects.filter(shrinks__isnull=False).exists()


def test_a_batch_job_does_not_grow_above_the_completions_that_are_left(north):
    QuotaTree.objects.all().delete()
    text = resizing.batch("work", 2, completions=4).replace(
        "name: work\n", f"name: work\n  annotations: {{{ELASTIC}: 'true'}}\n"
    )
    books.apply(text)
    resizing.runs("work")
    rested("work")
    Job.objects.filter(name="work").update(state=Job.State.RUNNING, status={"succeeded": 1})
    cycle()
    assert size("work") == 3


def test_each_role_grows_by_its_own_pods():
    """Two roles of as many pods and other GPUs: what is placed and charged is of the role that grows."""
    books.a_cluster("north", 32)
    Cluster.objects.update(apis={resizing.VOLCANO: {"Job": "jobs"}})
    policy, job = yaml.safe_load_all(resizing.volcano("llama", 1, bounds="1-3", at_once=2))
    small, large = ({**deepcopy(job["spec"]["tasks"][0]), "name": name} for name in ("small", "large"))
    large["template"]["spec"]["containers"][0]["resources"]["limits"][GPU] = 4
    job["spec"]["tasks"] = [small, large]
    job["metadata"]["annotations"] = {"convoy.dev/bounds": "small=1:3,large=1:3", **YES}
    books.apply(yaml.safe_dump_all([policy, job]))
    resizing.runs("llama")
    rested("llama")
    Job.objects.update(state=Job.State.RUNNING)
    [spare] = growth.load_spares(timezone.now())
    added = {next(iter(option.sizes.items())): option.gang.total[GPU] for option in spare.options}
    assert added == {("small", 3): 2, ("small", 2): 1, ("large", 3): 8, ("large", 2): 4}


def test_a_job_without_gpus_rests_too_once_its_size_has_changed():
    books.a_cluster("north", 8)
    books.apply(resizing.elastic("llama", 4, annotations=YES).replace(f"{GPU}: 1", "cpu: 1"))
    resizing.runs("llama")
    rested("llama")
    resizing.resize("llama", 3)
    bind("llama")
    cycle()
    assert (size("llama"), [gpus for _, gpus in Attempt.objects.get().sizes]) == (3, [0])
    cycle(300)
    assert size("llama") == 8


def test_what_a_member_says_of_completions_is_not_trusted(north):
    running(workers=2, most=4)
    for status in ({"succeeded": "many"}, {"succeeded": -5}, {"succeeded": True}, {"succeeded": None}):
        Job.objects.update(status=status)
        [spare] = growth.load_spares(timezone.now())
        assert spare.options[0].sizes == {"worker": 4}


def test_a_job_that_cannot_be_read_does_not_keep_others_from_growing(north):
    running("bad", workers=1, most=2)
    running("llama", workers=1, most=3)
    for bad in (
        {"size": {"worker": {"max": 2}}},
        {"resize": {"sizes": {"worker": 2}}},
        {"resize": {"sizes": {"x": 1}}},
    ):
        Job.objects.filter(name="bad").update(size=None, resize=None)
        Job.objects.filter(name="bad").update(**bad)
        growths = growth.load(timezone.now(), idle=True)
        assert not growths
        assert [spare.options[0].sizes for spare in growth.load_spares(timezone.now())] == [{"worker": 3}]


def test_a_growth_that_cannot_be_read_does_not_keep_others_from_growing(north):
    running("bad", workers=1, most=2)
    running("llama", workers=1, most=3)
    resizing.resize("llama", 3)
    for asked in (
        {"sizes": {"worker": 2}, "at": "yesterday"},
        {"sizes": {"worker": "2"}, "at": timezone.now().isoformat()},
    ):
        Job.objects.filter(name="bad").update(resize=asked)
        assert [each.sizes for each in growth.load(timezone.now(), idle=True)] == [{"worker": 3}]


def test_jobs_that_cannot_grow_are_not_counted_among_those_that_a_cycle_looks_at(north, monkeypatch):
    monkeypatch.setattr(growth, "_MOST_SPARES", 1)
    running("first", workers=1, most=1)
    running("llama", workers=1, most=3)
    running("last", workers=1, most=3)
    assert [spare.options[0].sizes for spare in growth.load_spares(timezone.now())] == [{"worker": 3}]
    cycle()
    assert [size(name) for name in ("first", "llama", "last")] == [1, 3, 1]


@pytest.mark.parametrize(("resource", "grows"), [("cpu", True), (GPU, False)])
def test_it_leaves_to_a_growth_that_waits_only_what_that_is_short_of(resource, grows):
    """North has 8 GPUs, of which 2 run and 8 are asked for, and plenty of processors."""
    books.a_cluster("north", 8)
    books.apply(resizing.elastic("wants", 2, most=16))
    resizing.runs("wants")
    resizing.resize("wants", 10)
    books.apply(resizing.elastic("llama", 1, most=2, annotations=YES).replace(f"{GPU}: 1", f"{resource}: 1"))
    resizing.runs("llama")
    rested("llama")
    cycle()
    assert (size("wants"), size("llama")) == (2, 2 if grows else 1)


moves = st.lists(
    st.tuples(
        st.sampled_from(["submit", "elastic", "end", "rest", "bind", "cycle"]), st.integers(0, 2), st.integers(1, 5)
    ),
    min_size=4,
    max_size=14,
)


@settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(moves)
def test_sizes_stay_within_bounds_and_what_grew_is_not_shrunk_without_an_event(transactional_db, steps):
    """By the rows: a job that grew in one cycle is as large after the next, when nothing was submitted or ended."""
    Job.objects.all().delete()
    Hold.objects.all().delete()
    Pod.objects.all().delete()
    Cluster.objects.all().delete()
    north = books.a_cluster("north", 8)
    apply_tree(leaf("a", **gpus(2, 8)), leaf("b", **gpus(2, 8)), total={**PLENTY, GPU: 8})
    for number, (action, which, workers) in enumerate(steps):
        live = list(Job.objects.exclude(state__in=Job.FINISHED).values_list("name", flat=True))
        match action:
            case "submit" | "elastic":
                annotations = YES if action == "elastic" else {}
                books.apply(resizing.elastic(f"j{number}", workers, queue="ab"[which % 2], annotations=annotations))
            case "end" if live and books.job(live[which % len(live)]).state == Job.State.RUNNING:
                name = live[which % len(live)]
                Pod.objects.filter(job_uid=books.job(name).uid).delete()
                books.end(name)
                recount(north)
            case "rest":
                for name in live:
                    rested(name)
            case "bind":
                start(live)
            case _:
                before = {job.name: size(job.name) for job in Job.objects.filter(state=Job.State.RUNNING)}
                cycle()
                after = {name: size(name) for name in before}
                cycle()
                grown = [name for name in before if after[name] > before[name]]
                assert all(size(name) >= after[name] for name in grown)
        sizes_agree()
        resizing.not_over_committed(north)
        charged = sum(job.charge.get(GPU, 0) for job in Job.objects.filter(charge__isnull=False))
        assert charged == books.used("root")[GPU] <= 8


def start(names) -> None:
    """The copies of all placed jobs are there with all their pods."""
    books.sent()
    for name in names:
        if books.job(name).state in (Job.State.PLACED, Job.State.DISPATCHED):
            books.report(name, "Running")
        if books.job(name).state == Job.State.RUNNING:
            bind(name)


def recount(cluster) -> None:
    node = cluster.nodes.get(name="node")
    node.requested = {GPU: Pod.objects.count(), "pods": Pod.objects.count()}
    node.save()
