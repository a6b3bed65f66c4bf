"""A borrower that can shrink gives back pod by pod before any job is stopped whole: what is written, and what is waited for."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.changes import events, journal
from fleet.models import Event, Hold, Pod
from jobs import snapshot
from jobs.core.resizing.elastic import ELASTIC
from jobs.models import Job
from jobs.services.follow import sweep
from jobs.services.submission import dry_runs, manifests
from jobs.snapshot_running import load_parts
from tests.jobs.services import resizing
from tests.jobs.services.resizing import cycle, order, size, sizes_agree
from tests.support import books
from tests.support.books import GPU
from tests.support.quotas import apply_tree, gpus, leaf

pytestmark = pytest.mark.django_db
YES = {ELASTIC: "true"}


@pytest.fixture
def north():
    cluster = books.a_cluster("north", 8)
    apply_tree(leaf("a", **gpus(4, 8)), leaf("b", **gpus(4, 8)))
    return cluster


def borrower(name: str = "llama", workers: int = 8, *, least: int = 1, **annotations: str) -> Job:
    books.apply(resizing.elastic(name, workers, least=least, queue="b", annotations={**YES, **annotations}))
    return resizing.runs(name)


def ask(name: str = "mine", workers: int = 2) -> None:
    books.apply(resizing.elastic(name, workers, queue="a"))


def leave(name: str, *, pods: int = 10**6) -> None:
    """As many of the pods above the size in force leave their nodes, and the watcher has written it."""
    job = books.job(name)
    above = Pod.objects.filter(job_uid=job.uid, index__gte=size(name)).order_by("-index")[:pods]
    Pod.objects.filter(pk__in=[pod.pk for pod in above]).delete()
    node = job.cluster.nodes.get(name="node")
    node.requested = {GPU: Pod.objects.count(), "pods": Pod.objects.count()}
    node.save()
    change = journal.Change("Node", job.cluster.name, "node", str(job.cluster.uid), journal.Action.MODIFIED)
    events.announce([change], timezone.now())


def test_it_takes_as_many_pods_as_are_missing_and_the_job_runs_on(north):
    borrower()
    ask(workers=2)
    cycle()
    assert (size("llama"), books.used("root/b")[GPU], books.job("llama").state) == (6, 6, Job.State.RUNNING)
    assert (books.job("llama").attempt, order("llama").resize_wanted) == (1, 1)
    sizes_agree()
    why = "default/mine of root/a was promised its place: root/b is 4 nvidia.com/gpu above its min"
    assert Event.objects.get(reason="Resized").message == f"worker from 8 to 6: {why}"
    assert books.job("mine").reason["code"] == "WaitingForReclaim"
    assert "2 pods of" in books.job("mine").reason["message"]


def test_it_places_the_preemptor_when_the_pods_are_gone_and_takes_nothing_more_until_then(north):
    borrower()
    ask(workers=2)
    for _ in range(3):
        cycle()
        assert (size("llama"), books.job("mine").state) == (6, Job.State.QUEUED)
    leave("llama", pods=1)
    cycle()
    assert (size("llama"), books.job("mine").state) == (6, Job.State.QUEUED)
    leave("llama")
    cycle()
    assert (size("llama"), books.job("mine").state) == (6, Job.State.PLACED)
    resizing.not_over_committed(north)
    sizes_agree()


def test_it_keeps_what_becomes_free_for_the_preemptor_alone(north):
    borrower()
    ask("mine", workers=2)
    cycle()
    books.apply(resizing.elastic("thief", 1, queue="b"))
    leave("llama")
    cycle()
    assert (books.job("mine").state, books.job("thief").state) == (Job.State.PLACED, Job.State.QUEUED)


def test_a_job_gives_back_to_several_preemptors_and_never_below_its_min(north):
    borrower(least=5)
    for name in ("one", "two", "three"):
        ask(name, workers=1)
    cycle()
    assert size("llama") == 5 and books.job("llama").state == Job.State.RUNNING
    assert len(books.job("llama").shrinks) == 3
    sizes_agree()


def test_it_counts_on_the_nodes_of_the_last_pods_which_its_operator_ends_and_not_of_those_that_are_gone(north):
    borrower(workers=8)
    Pod.objects.filter(name="llama-worker-1").delete()
    ask(workers=2)
    cycle()
    assert (size("llama"), books.job("llama").state) == (6, Job.State.RUNNING)
    job = snapshot.running_jobs().filter(name="llama")
    [part] = load_parts(job, snapshot.load_quota(), timezone.now(), timedelta(minutes=1))
    assert [node for node, _ in part.pods] == ["node", "node"], "workers 6 and 7 run"


def test_it_takes_no_pods_where_too_few_of_those_that_run_would_stay(north):
    """Of eight workers the first three are gone: of six its operator would keep three that run, and its min is five."""
    borrower(workers=8, least=5)
    Pod.objects.filter(index__lt=3).update(node="", phase="Pending")
    ask(workers=2)
    cycle()
    assert (size("llama"), books.job("llama").state) == (8, Job.State.RECLAIMING)


def test_it_stops_a_job_whole_only_where_its_pods_do_not_suffice(north):
    borrower(least=6)
    ask(workers=4)
    cycle()
    assert books.job("llama").state == Job.State.RECLAIMING and size("llama") == 8


def test_a_job_that_has_not_opted_in_is_stopped_whole(north):
    borrower(**{ELASTIC: "false"})
    ask(workers=2)
    cycle()
    assert books.job("llama").state == Job.State.RECLAIMING


def test_it_shrinks_one_of_higher_priority_before_it_stops_one_of_lower(north):
    borrower("elastic", 4)
    books.apply(resizing.elastic("rigid", 4, queue="b"))
    resizing.runs("rigid")
    ask(workers=2)
    cycle()
    assert (size("elastic"), books.job("rigid").state) == (2, Job.State.RUNNING)


def test_it_takes_pods_from_one_of_lower_priority_in_its_own_queue(north):
    by_priority = {"preempt-policy": "PreemptLowerPriority", "priority-classes": '{"high": 7}'}
    apply_tree(leaf("b", **gpus(4, 8), attributes=by_priority))
    borrower()
    text = resizing.elastic("urgent", 2, queue="b").replace(
        "containers:", "priorityClassName: high\n          containers:"
    )
    books.apply(text)
    cycle()
    assert (size("llama"), books.job("llama").state, books.job("urgent").priority) == (6, Job.State.RUNNING, 7)
    leave("llama")
    cycle()
    assert books.job("urgent").state == Job.State.PLACED
    sizes_agree()


def test_it_searches_again_when_the_pods_have_not_gone_long_after_their_grace_period(north):
    borrower("llama", 6)
    books.apply(resizing.elastic("rigid", 2, queue="b"))
    resizing.runs("rigid")
    ask(workers=2)
    cycle()
    assert (size("llama"), books.job("rigid").state) == (4, Job.State.RUNNING)
    later = timezone.now() + timedelta(hours=1)
    sweep.run(later)
    assert books.job("llama").shrinks is None
    cycle()
    assert size("llama") < 4 or books.job("rigid").state == Job.State.RECLAIMING


def test_its_record_ends_with_the_time_of_the_preemptor(north):
    borrower()
    ask(workers=2)
    cycle()
    leave("llama")
    cycle()
    sweep.run(timezone.now())
    assert books.job("llama").shrinks is not None
    sweep.run(timezone.now() + timedelta(hours=1))
    assert books.job("llama").shrinks is None


def test_a_dry_run_says_how_many_pods_go(north):
    borrower()
    text = resizing.elastic("mine", 2, queue="a")
    outcome = dry_runs.preview_outcomes(manifests.parse(text.encode()), by="test", now=timezone.now())[0]
    assert outcome.outcome == "Reclaims" and "gives back 2 of 8 worker pods and runs on" in outcome.reclaims[0].message
    assert size("llama") == 8 and books.job("llama").shrinks is None


def test_an_annotation_that_says_neither_true_nor_false_is_refused(north):
    with pytest.raises(Exception, match="must be one of true, false"):
        books.apply(resizing.elastic("llama", 2, annotations={ELASTIC: "maybe"}))


def test_what_is_held_for_pods_that_are_not_bound_yet_is_given_back_too(north):
    borrower("llama", 4, least=1)
    resizing.resize("llama", 8)
    cycle()
    assert size("llama") == 8
    ask(workers=2)
    cycle()
    assert size("llama") == 6 and Hold.objects.get(released_at=None, job_uid=books.job("llama").uid).amounts[GPU] == 2
    sizes_agree()


def test_a_growth_that_a_person_asked_for_is_decided_in_the_cycle_that_places_the_preemptor(north):
    borrower()
    ask(workers=2)
    cycle()
    resizing.resize("llama", 8)
    leave("llama")
    cycle()
    assert (books.job("mine").state, size("llama")) == (Job.State.PLACED, 6)
    assert books.job("llama").resize["reason"]["code"]
