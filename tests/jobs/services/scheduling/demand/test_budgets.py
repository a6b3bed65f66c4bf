"""Budgets of GPU-hours: what is counted, what happens when one is spent and renewed, over every way a job can end."""

import json
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
import yaml

from fleet.models import Node
from fleet.services.operations.clock_steps import StepDetector
from jobs import snapshot
from jobs.models import Attempt, DeletedUse, Job
from jobs.services.failover import failover
from jobs.services.lifecycle.accounting import deleted_use
from jobs.services.scheduling import loop
from jobs.services.scheduling.decisions import preemption
from jobs.services.scheduling.demand import budgets, queueing
from jobs.services.submission import manifests, submit
from jobs.services.submission.changes import actions
from quotas.models import Queue
from quotas.services import previews, trees, views
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.people import person
from tests.support.quotas import PLENTY, gpus, leaf
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def fleet():
    loop._idle_caches.clear()
    budgets._last.clear()
    books.a_cluster("north", 64)


def tree(hours: float, per: str = "month", when: str = "Wait", *, now: datetime = NOON, on: str = "team", low: int = 0):
    stated = {"budget": json.dumps({"nvidia.com/gpu-hours": hours, "per": per, "when-spent": when})}
    team = quota("team", {}, {}, leaf("a", "default", **gpus(low, 64), attributes=stated if on == "a" else {}),
                 leaf("c", **gpus(0, 64)), attributes=stated if on == "team" else {})  # fmt: skip
    team |= gpus(low, 64)
    body = manifest(quota("root", PLENTY, PLENTY, team, leaf("b", "other", **gpus(0, 64))))
    return trees.save(body, trees.Saving("system", now))


def submitted(name: str, devices: int, now: datetime, namespace: str = "default") -> Job:
    documents = [yaml.safe_load(text) for text in (POLICY, pytorch_job(name, workers=0, gpus=devices))]
    for document in documents:
        document["metadata"]["namespace"] = namespace
    submit.apply(manifests.parse(yaml.safe_dump_all(documents).encode()), by="ada", now=now)
    return books.job(name)


def placed(name: str, devices: int, now: datetime, namespace: str = "default") -> Job:
    submitted(name, devices, now, namespace)
    cycle(now)
    books.sent()
    return books.job(name)


def cycle(now: datetime) -> None:
    books.cycle(now)


def reviewed(now: datetime) -> int:
    budgets._last.clear()
    changed = budgets.review(now)
    cycle(now)
    return changed


def hours(now: datetime) -> float:
    found, _ = snapshot.tree_in_force()
    assert found is not None
    [account] = budgets.accounts(found, now)
    return account.used_hours


def waits_for(name: str) -> str:
    job = books.job(name)
    return job.reason["code"] if job.state == Job.State.QUEUED else job.state


def test_nothing_starts_once_the_budget_is_spent_and_the_reason_says_the_numbers_and_the_date():
    tree(40)
    placed("first", 8, NOON)
    assert reviewed(NOON + 5 * HOUR - timedelta(seconds=1)) == 0
    placed("second", 1, NOON + 4 * HOUR)
    assert reviewed(NOON + 5 * HOUR) == 1
    later = NOON + 5 * HOUR
    submitted("third", 1, later)
    submitted("beside", 1, later, "other")
    cycle(later)
    assert [waits_for(name) for name in ("first", "second", "third", "beside")] == [
        "Placed", "Placed", "BudgetSpent", "Placed",
    ]  # fmt: skip
    job = books.job("third")
    assert job.reason["message"] == (
        "root/team has spent its budget: 41.0 of 40 GPU-hours of this month (UTC); it is renewed at 2026-04-01 00:00:00 UTC"
    )
    facts = {name: job.reason["quota"][name] for name in ("path", "used_gpu_hours", "gpu_hours", "per", "until")}
    assert facts == {"path": "root/team", "used_gpu_hours": 41.0, "gpu_hours": 40.0, "per": "month",
                     "until": "2026-04-01T00:00:00+00:00"}  # fmt: skip
    assert reviewed(later + HOUR) == 0, "it is written once"


def test_a_renewed_budget_lets_jobs_start_and_so_does_a_higher_one():
    tree(8, per="day")
    placed("first", 8, NOON)
    later = NOON + HOUR
    reviewed(later)
    books.report("first", "Succeeded", now=later)
    submitted("second", 1, later)
    cycle(later)
    assert waits_for("second") == "BudgetSpent"
    tree(9, per="day", now=later)
    budgets.review(later)  # another tree is not waited for
    cycle(later)
    assert waits_for("second") == "Placed"
    books.report("second", "Succeeded", now=later + HOUR)
    assert reviewed(later + HOUR) == 1
    submitted("third", 1, later + HOUR)
    cycle(later + HOUR)
    assert waits_for("third") == "BudgetSpent"
    midnight = NOON.replace(hour=0) + timedelta(days=1)
    assert reviewed(midnight - timedelta(seconds=1)) == 0 and reviewed(midnight) == 1
    assert waits_for("third") == "Placed"


def test_with_borrow_nothing_jobs_within_min_start_and_others_wait_for_the_budget():
    tree(8, when="BorrowNothing", low=10)
    placed("first", 8, NOON)
    later = NOON + HOUR
    reviewed(later)
    submitted("over", 4, later)
    submitted("within", 2, later)
    cycle(later)
    assert [waits_for(name) for name in ("first", "over", "within")] == ["Placed", "BudgetSpent", "Placed"]
    assert "it is renewed at" in books.job("over").reason["message"]


def test_what_borrows_already_runs_on_with_borrow_nothing():
    tree(8, when="BorrowNothing", low=4)
    placed("first", 8, NOON)
    for later in (NOON + HOUR, NOON + 2 * HOUR):
        reviewed(later)
        assert waits_for("first") == "Placed"


def test_with_stop_what_runs_is_evicted_and_starts_again_when_the_budget_is_renewed():
    tree(8, per="day", when="Stop")
    placed("first", 8, NOON)
    books.report("first", "Running", now=NOON)
    reviewed(NOON + HOUR)
    job = books.job("first")
    assert job.state == Job.State.RECLAIMING and "root/team has spent its budget" in job.reason["message"]
    books.gone("first")
    preemption.advance(NOON + 2 * HOUR)
    cycle(NOON + 2 * HOUR)
    assert waits_for("first") == "BudgetSpent"
    reviewed(NOON + 12 * HOUR)
    assert waits_for("first") == "Placed"


def test_what_was_used_stays_with_the_queue_that_used_it():
    tree(100, on="a")
    placed("first", 8, NOON)
    actions.suspend(books.job("first"), by="ada", now=NOON + HOUR)
    books.gone("first")
    actions.resume(books.job("first"), by="ada", now=NOON + HOUR)
    Job.objects.update(charge=None)
    queueing.move(books.job("first"), "root/team/c", by="ada", now=NOON + HOUR)
    cycle(NOON + HOUR)
    assert books.job("first").attempt == 2 and hours(NOON + 9 * HOUR) == 8


def test_what_a_deleted_job_used_counts_for_as_long_as_a_budget_needs_it(settings):
    tree(100, per="year")
    job = placed("first", 8, NOON)
    books.gone("first")
    assert actions.delete(job, by="ada", now=NOON + HOUR) or failover.finish_deletion(job, NOON + HOUR)
    deleted_use.forget(NOON + timedelta(days=200))
    assert hours(NOON + timedelta(days=200)) == 8
    deleted_use.forget(NOON + timedelta(days=400))
    assert not DeletedUse.objects.exists()


def test_a_period_counts_what_falls_into_it_alone():
    tree(1000, per="day")
    placed("first", 4, NOON)
    assert hours(NOON + 11 * HOUR) == 44
    assert hours(NOON + 13 * HOUR) == 4


def test_the_tree_says_what_is_used_when_it_is_renewed_and_when_it_will_be_spent():
    tree(80)
    placed("first", 8, NOON)
    row = trees.queries.tree_row()
    nodes = {node.path: node for node in views.tree_view_of(row, person("eva"), NOON + HOUR).nodes}
    account = nodes["root/team"].budget
    assert nodes["root/b"].budget is None and account is not None
    assert (account.used_hours, account.running, account.is_spent) == (8, 8, False)
    assert account.spent_at == NOON + 10 * HOUR
    assert account.forecast_hours == 8 * (account.end - NOON) / HOUR


def test_an_edit_warns_of_a_budget_that_is_spent_already():
    tree(100)
    placed("first", 8, NOON)
    [warning] = tree(4, now=NOON + HOUR).warnings
    assert warning.endswith(": nothing starts there until then") and "8.0 of 4 GPU-hours of this month" in warning


@pytest.mark.parametrize(("when", "hours_allowed", "starts", "waits", "stopped"), [
    ("Wait", 8, [], {"PyTorchJob default/small": "BudgetSpent", "PyTorchJob default/big": "BudgetSpent"}, []),
    ("BorrowNothing", 8, [], {"PyTorchJob default/big": "BudgetSpent"}, []),
    ("Stop", 8, [], {"PyTorchJob default/small": "BudgetSpent", "PyTorchJob default/big": "BudgetSpent"},
     ["PyTorchJob default/first"]),
    ("Stop", 9, [], {}, []),
])  # fmt: skip
def test_the_preview_lists_the_jobs_that_a_spent_budget_keeps_waiting_or_stops(
    when, hours_allowed, starts, waits, stopped
):
    tree(1000, low=10)
    placed("first", 8, NOON)
    for name, devices in (("small", 2), ("big", 4)):
        submitted(name, devices, NOON)
    row = trees.queries.tree_row()
    body = {**row.manifest, "spec": json.loads(json.dumps(row.manifest["spec"]))}
    stated = {"nvidia.com/gpu-hours": hours_allowed, "per": "month", "when-spent": when}
    body["spec"]["root"]["children"][0]["attributes"]["budget"] = json.dumps(stated)
    effect = previews.of_manifest(body, by="system", now=NOON + HOUR).effect
    assert [line.job for line in effect.starts] == starts and {line.job: line.code for line in effect.waits} == waits
    assert [(line.job, line.code) for line in effect.reclaimed] == [(job, "BudgetSpent") for job in stopped]
    back = previews.of_manifest(row.manifest, by="system", now=NOON + HOUR).effect
    assert not (back.starts or back.waits or back.reclaimed)


def test_with_borrow_nothing_devices_of_other_vendors_are_not_borrowed_either():
    """Of a vendor that the tree does not even name."""
    node = Node.objects.get()
    node.allocatable |= {"amd.com/gpu": 8}
    node.save(update_fields=["allocatable"])
    tree(8, when="BorrowNothing", low=10)
    placed("first", 8, NOON)
    later = NOON + HOUR
    reviewed(later)
    text = pytorch_job("other", workers=0, gpus=1).replace("nvidia.com/gpu", "amd.com/gpu")
    submit.apply(manifests.parse(text.encode()), by="ada", now=later)
    cycle(later)
    assert waits_for("other") == "BudgetSpent"
    reviewed(NOON.replace(month=4, day=1, hour=0))
    assert waits_for("other") == "Placed"


def test_a_review_costs_no_statement_without_a_budget_but_the_look(django_assert_max_num_queries):
    trees.save(
        manifest(quota("root", PLENTY, PLENTY, leaf("a", "default", **gpus(0, 8)))), trees.Saving("system", NOON)
    )
    with django_assert_max_num_queries(2):
        assert budgets.review(NOON) == 0
    assert not Queue.objects.filter(spent__isnull=False).exists()


@pytest.mark.parametrize("seed", range(12))
def test_the_figures_equal_a_recount_of_each_second_over_crashes(seed):
    """Attempts of every fate, of jobs that move, fail over and are deleted; the recount knows only who held what when."""
    rng, now, held = Random(seed), NOON, []
    tree(10**6, per=rng.choice(["day", "week", "month"]))
    for number in range(6):
        name, devices = f"job-{number}", rng.randint(1, 8)
        placed(name, devices, now)
        for _ in range(rng.randint(1, 4)):
            begin, now = now, now + timedelta(seconds=rng.randint(1, 50_000), milliseconds=rng.randint(0, 999))
            if rng.random() < 0.2:
                held.append((devices, begin, None))
                break
            held.append((devices, begin, now))
            job = books.job(name)
            actions.suspend(job, by="ada", now=now)
            books.gone(name)
            loop._idle_caches.clear()  # the process that counted has died
            if rng.random() < 0.3:
                Job.objects.filter(pk=job.pk).update(charge=None)
                assert actions.delete(books.job(name), by="ada", now=now)
                break
            Job.objects.filter(pk=job.pk).update(charge=None)
            actions.resume(books.job(name), by="ada", now=now)
            cycle(now)
            if books.job(name).state != Job.State.PLACED:
                break
            books.sent()
        else:
            held.append((devices, now, None))
    found, _ = snapshot.tree_in_force()
    [account] = budgets.accounts(found, now)
    expected = sum(
        devices * max(0.0, ((until or now) - max(begin, account.begin)).total_seconds())
        for devices, begin, until in held
    )
    attempts = Attempt.objects.count() + DeletedUse.objects.count()
    assert account.used_ms / 1000 == pytest.approx(expected, abs=attempts * 0.01)
    assert account.running == sum(devices for devices, _, until in held if until is None)


def test_a_clock_that_is_a_month_ahead_for_ten_minutes_spends_nothing():
    tree(40, when="Stop")
    placed("first", 8, NOON)
    detector, ahead, begun = StepDetector(), timedelta(days=31), NOON + HOUR
    detector.look(begun, 0.0)
    detector.look(begun + ahead + timedelta(seconds=30), 30.0)
    assert reviewed(begun + ahead + timedelta(seconds=30)) == 0
    assert reviewed(begun + ahead + timedelta(minutes=9)) == 0 and waits_for("first") == "Placed"
    assert reviewed(begun + ahead + timedelta(minutes=11)) == 1, "a clock that stays ahead is believed"
