"""Reclaim between queues that borrow, through the rows: both are told, and the right is used up, in whatever process."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.models import Hold
from jobs.core.explain.remedies import Kind
from jobs.models import Job, Work
from jobs.services.inspect import explaining
from jobs.services.scheduling import loop
from jobs.services.submission import dry_runs, manifests
from quotas.services import previews, trees
from tests.jobs.services.scheduling.builders import WHOLE, job
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import GPU, team

pytestmark = pytest.mark.django_db
NOW = timezone.now()
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def no_cache_of_before():
    loop._idle_caches.clear()
    yield
    loop._idle_caches.clear()


def the_tree(reclaim: str = "FairShare", **of_b: str) -> dict:
    """Nobody is promised anything."""
    leaves = team("a", 0, 6), team("b", 0, 6, attributes={key.replace("_", "-"): of_b[key] for key in of_b})
    return manifest(quota("root", WHOLE, WHOLE, *leaves, attributes={"reclaim": reclaim}))


def full(reclaim: str = "FairShare", **of_b: str) -> None:
    """Two of b's jobs fill everything."""
    books.a_cluster(gpus=6)
    trees.apply(the_tree(reclaim, **of_b), by="system", now=NOW)
    books.apply(job("old", "b"), job("young", "b"))
    books.cycle(NOW)
    books.sent()
    Job.objects.filter(name="old").update(state="Running", started_at=NOW - 60 * MINUTE)
    Job.objects.filter(name="young").update(state="Running", started_at=NOW)


@pytest.fixture
def claimed():
    full()
    books.apply(job("mine", "a"))
    books.cycle(NOW)


def states() -> dict[str, str]:
    return dict(Job.objects.values_list("name", "state"))


def leave(name: str) -> None:
    """Its pods are gone."""
    row = books.job(name)
    Work.objects.filter(job_uid=row.uid).update(state=Work.State.GONE)
    Hold.objects.filter(job_uid=row.uid).update(released_at=NOW)
    loop.advance_evictions(NOW + MINUTE)


def test_the_queue_that_borrows_more_makes_room_and_both_are_told(claimed):
    young, mine = books.job("young"), books.job("mine")
    assert states() == {"old": "Running", "young": "Reclaiming", "mine": "Queued"}
    assert young.reclaim["cause"] == "FairShare"
    assert "default/mine of root/a borrows its place: root/b borrows a share of 100 %" in young.reason["message"]
    assert mine.reason["message"].startswith(
        "waits for default/young to leave root/a what it may borrow, at the latest at"
    )
    books.cycle(NOW)
    assert "what it may borrow" in books.job("mine").reason["message"], "also when it was ordered before"
    leave("young")
    books.cycle(NOW + MINUTE)
    assert states() == {"old": "Running", "young": "Queued", "mine": "Placed"}


def test_the_one_that_left_takes_nothing_back(claimed):
    leave("young")
    for minutes in range(1, 9):
        books.cycle(NOW + minutes * MINUTE)
    assert states() == {"old": "Running", "young": "Queued", "mine": "Placed"}


@pytest.mark.parametrize("restarts", [False, True])
def test_the_right_is_used_up_whether_or_not_the_job_could_start(claimed, restarts):
    """The room that was made for it has gone to another one by hand; b fills everything again."""
    assert books.job("mine").claimed_at == NOW
    Job.objects.filter(name="young").update(state="Running", reclaim=None)
    loop._idle_caches[0].invalidate()
    if restarts:
        loop._idle_caches.clear()
    for minutes in range(1, 5):
        books.cycle(NOW + minutes * MINUTE)
    assert states() == {"old": "Running", "young": "Running", "mine": "Queued"}
    books.apply(job("next", "a"))
    books.cycle(NOW + 5 * MINUTE)
    assert "Reclaiming" in states().values(), "the next job of the queue has its own"


def test_it_waits_for_the_end_of_a_min_runtime_and_nobody_leaves_before():
    full(min_runtime="10m")
    books.apply(job("mine", "a"))
    for minutes in (1, 9.9):
        books.cycle(NOW + minutes * MINUTE)
        assert states() == {"old": "Running", "young": "Running", "mine": "Queued"}
    books.cycle(NOW + 10.1 * MINUTE)
    assert sorted(states().values()) == ["Queued", "Reclaiming", "Running"]


def test_nobody_leaves_where_the_tree_does_not_state_it():
    full("Min")
    books.apply(job("mine", "a"))
    books.cycle(NOW)
    assert states() == {"old": "Running", "young": "Running", "mine": "Queued"}


def test_a_preview_of_the_tree_and_a_dry_run_name_who_would_leave():
    full("Min")
    books.apply(job("mine", "a"))
    books.cycle(NOW)
    effect = previews.of_manifest(the_tree(), by="system", now=NOW).effect
    (line,) = effect.reclaimed
    assert (line.job, line.code) == ("PyTorchJob default/young", "FairShare") and "makes room for" in line.message
    trees.apply(the_tree(), by="system", now=NOW)
    Job.objects.filter(name="mine").delete()
    outcome = dry_runs.preview_outcomes(manifests.parse(job("next", "a").encode()), by="test", now=NOW)[0]
    assert [each.name for each in outcome.reclaims] == ["default/young"]
    assert not Job.objects.filter(claimed_at__isnull=False).exists()
    assert books.used("root")[GPU] == 6


@pytest.mark.parametrize(("gpus", "claimed_at", "said"), [
    (6, None, "and root/a would borrow 100 % with this job: none is evicted for it before that share is the larger one"),
    (3, NOW, "and root/a would borrow 50 % with this job, which has had others evicted for what it would borrow once already"),
    (3, None, "and root/a would borrow 50 % with this job: jobs that borrow there may be evicted for it"),
])  # fmt: skip
def test_the_explanation_of_a_job_that_waits_says_the_shares_and_when_they_would_help(gpus, claimed_at, said):
    full(min_runtime="1h")
    books.apply(job("mine", "a").replace("replicas: 2", f"replicas: {gpus - 1}"))
    Job.objects.filter(name="mine").update(claimed_at=claimed_at)
    Job.objects.exclude(name="mine").update(charged_at=NOW)
    books.cycle(NOW)
    explanation = explaining.explain_job(books.job("mine"), NOW, lambda _: True)
    steps = [step for change in explanation.changes for step in (change, *change.steps)]
    [change] = [step for step in steps if step.kind is Kind.RETURN_BORROWED]
    assert change.message.startswith("root/b uses 6 nvidia.com/gpu more than its min (root/b borrows a share of 100 %")
    assert said in change.message


def test_the_explanation_says_no_share_where_none_is_claimed():
    full(reclaim="Min")
    books.apply(job("mine", "a"))
    books.cycle(NOW)
    explanation = explaining.explain_job(books.job("mine"), NOW, lambda _: True)
    assert not [each for each in explanation.changes if "share" in each.message]


URGENT = {"borrowing-priority": "10"}


def urgent_tree(**of_b: str) -> dict:
    leaves = team("a", 0, 6), team("b", 0, 6, attributes={key.replace("_", "-"): of_b[key] for key in of_b})
    return manifest(quota("root", WHOLE, WHOLE, *leaves, attributes=URGENT))


@pytest.mark.parametrize(("priority", "stays"), [("9", True), ("10", False)])
def test_from_the_borrowing_priority_on_a_job_evicts_one_below_that_borrows(priority, stays):
    full("Min")
    trees.apply(urgent_tree(), by="system", now=NOW)
    books.apply(job("mine", "a", **{"convoy.dev/priority": priority}))
    books.cycle(NOW)
    assert states() == {"old": "Running", "young": "Running" if stays else "Reclaiming", "mine": "Queued"}
    if not stays:
        message = books.job("young").reason["message"]
        assert "below the borrowing-priority 10, which root/a's job has" in message
        leave("young")
        books.cycle(NOW + MINUTE)
        assert states() == {"old": "Running", "young": "Queued", "mine": "Placed"}


def test_jobs_of_the_borrowing_priority_do_not_evict_each_other():
    full("Min")
    trees.apply(urgent_tree(), by="system", now=NOW)
    Job.objects.update(priority=10)
    loop._idle_caches.clear()
    books.apply(job("mine", "a", **{"convoy.dev/priority": "11"}))
    books.cycle(NOW)
    assert states() == {"old": "Running", "young": "Running", "mine": "Queued"}


def advice(name: str) -> str:
    """What the explanation says of the queue that borrows."""
    explanation = explaining.explain_job(books.job(name), NOW, lambda _: True)
    steps = [step for change in explanation.changes for step in (change, *change.steps)]
    return next(step.message for step in steps if step.kind is Kind.RETURN_BORROWED)


@pytest.mark.parametrize("rule", ["share", "priority"])
def test_a_borrower_is_told_until_when_those_that_it_may_evict_are_protected(rule):
    full(min_runtime="10m")
    if rule == "priority":
        trees.apply(urgent_tree(min_runtime="10m"), by="system", now=NOW)
    books.apply(job("mine", "a", **{"convoy.dev/priority": "10"}))
    books.cycle(NOW)
    assert books.job("mine").state == "Queued"
    until = f"{NOW + 10 * MINUTE:%Y-%m-%d %H:%M:%S} UTC"
    assert f"may be evicted for it, from {until} on, when the min-runtime of the first is over" in advice("mine")
    Job.objects.filter(name="old").update(charge={"cpu": 1000}, charged_at=NOW - 11 * MINUTE)
    Job.objects.filter(name="young").update(charge={GPU: 6})
    assert f"from {until} on" in advice("mine")
    role = Job.objects.get(name="young").roles[0]["name"]
    Job.objects.filter(name="young").update(elastic=True, size={role: {"min": 0, "replicas": 1}})
    assert "min-runtime" not in advice("mine")


def test_a_job_whose_queue_preempts_by_priority_is_not_told_that_others_may_be_evicted_for_it():
    full()
    leaves = team("a", 0, 6, attributes={"preempt-policy": "PreemptLowerPriority"}), team("b", 0, 6)
    attributes = {"reclaim": "FairShare", **URGENT}
    trees.apply(manifest(quota("root", WHOLE, WHOLE, *leaves, attributes=attributes)), by="system", now=NOW)
    books.apply(job("mine", "a", **{"convoy.dev/priority": "10"}))
    books.cycle(NOW)
    assert states() == {"old": "Running", "young": "Running", "mine": "Queued"}
    assert "evicts no jobs of other queues for what it would borrow: its queue preempts by priority" in advice("mine")


def test_a_job_that_may_not_be_preempted_is_not_told_that_others_may_be_evicted_for_it():
    books.a_cluster(gpus=6)
    leaves = team("a", 3, 6), team("b", 0, 6)
    trees.apply(
        manifest(quota("root", WHOLE, WHOLE, *leaves, attributes={"reclaim": "FairShare"})), by="system", now=NOW
    )
    firm = {"quota.scheduling.alibabacloud.com/preemptible": "false"}
    books.apply(job("first", "a"), job("other", "b"))
    body = yaml.safe_load(job("mine", "a"))
    body["metadata"]["labels"] |= firm
    books.cycle(NOW)
    books.apply(yaml.safe_dump(body))
    books.cycle(NOW)
    assert states() == {"first": "Placed", "other": "Placed", "mine": "Queued"}
    assert "may not be preempted, and evicts no jobs for what it would borrow" in advice("mine")
