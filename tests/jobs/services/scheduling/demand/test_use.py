"""What queues and users have used is the sum of their attempts: over a restart, a crash, evictions, failovers and deletions."""

from collections import defaultdict
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

import pytest
from django.db import transaction
from django.utils import timezone

from jobs.core.scheduling.backfill_reservation import Runs
from jobs.models import Attempt, DeletedUse, Job, Work
from jobs.services.failover import failover
from jobs.services.follow import sweep
from jobs.services.inspect import explaining
from jobs.services.lifecycle.accounting import deleted_use
from jobs.services.scheduling import loop, runtimes
from jobs.services.scheduling.demand import use as use_service
from jobs.services.submission import manifests, submit
from jobs.services.submission.changes import actions
from quotas.services import trees
from tests.jobs.services.scheduling.builders import WHOLE, job
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import team
from tests.support.people import client_of, person
from tests.support.world import POLICY

pytestmark = pytest.mark.django_db
NOW = timezone.now()
HOUR = timedelta(hours=1)
WEEK_S = 7 * 86400.0


@pytest.fixture(autouse=True)
def no_cache_of_before():
    loop._idle_caches.clear()
    use_service._last.clear()
    yield
    loop._idle_caches.clear()
    use_service._last.clear()


@pytest.fixture
def shared():
    books.a_cluster(gpus=6)
    attributes = {"fair-share": "OverTime"}
    trees.apply(
        manifest(quota("root", WHOLE, WHOLE, team("a", 0, 6), team("b", 0, 6), attributes=attributes)),
        by="system",
        now=NOW,
    )


def apply(*texts: str, by: str = "ada", at: datetime = NOW) -> None:
    submit.apply(manifests.parse("\n---\n".join((POLICY, *texts)).encode()), by=by, now=at)


def run(name: str, at: datetime) -> None:
    books.cycle(at)
    books.sent()
    assert books.job(name).state == Job.State.PLACED
    books.report(name, "Running", now=at)


def use(at: datetime) -> dict[tuple[str, str], float]:
    """GPU-seconds by leaf and user, as a process that starts now reads them; and the one that runs has the same."""
    fresh = {account: value for account, value in runtimes.load(at).use_by_user(at.timestamp()).items() if value > 1e-6}
    if loop._idle_caches:
        cache = loop._idle_caches[0]
        cache.refresh(at)
        kept = cache.runs().use_by_user(at.timestamp())
        assert {account: value for account, value in kept.items() if value > 1e-6} == pytest.approx(fresh)
    return fresh


def faded(gpus: int, since: float, until: float) -> float:
    """Second by second: the oracle of the sum. Hours before now."""
    step, total, at = 60.0, 0.0, until * 3600
    while at < since * 3600 - 1e-6:
        total += gpus * step * 0.5 ** ((at + step / 2) / WEEK_S)
        at += step
    return total


def test_a_run_counts_for_its_queue_and_its_user(shared):
    apply(job("one", "a"))
    run("one", NOW)
    books.report("one", "Succeeded", now=NOW + HOUR)
    assert use(NOW + 3 * HOUR) == pytest.approx({("root/a", "ada"): faded(3, 3, 2)}, rel=1e-4)


def test_a_deleted_job_goes_on_counting(shared):
    apply(job("one", "a"))
    run("one", NOW)
    before = use(NOW + HOUR)  # the process that runs has seen it
    books.report("one", "Succeeded", now=NOW + HOUR)
    actions.delete(books.job("one"), by="ada", now=NOW + HOUR)
    books.gone("one")
    failover.finish_deletion(books.job("one"), NOW + HOUR)
    assert not Job.objects.exists() and before
    assert use(NOW + 2 * HOUR) == pytest.approx({("root/a", "ada"): faded(3, 2, 1)}, rel=1e-4)


def test_a_crash_in_the_deletion_counts_it_once(shared, monkeypatch):
    apply(job("one", "a"))
    run("one", NOW)
    books.report("one", "Succeeded", now=NOW + HOUR)
    Job.objects.update(deleting_at=NOW + HOUR)
    Work.objects.update(state=Work.State.GONE)
    keep = deleted_use.keep

    def killed(row: Job, now: datetime) -> None:
        keep(row, now)
        raise KeyboardInterrupt

    monkeypatch.setattr(deleted_use, "keep", killed)
    with pytest.raises(KeyboardInterrupt), transaction.atomic():
        failover.finish_deletion(books.job("one"), NOW + HOUR)
    assert Job.objects.count() == 1 and not DeletedUse.objects.exists()
    monkeypatch.undo()
    failover.finish_deletion(books.job("one"), NOW + HOUR)
    assert use(NOW + 2 * HOUR) == pytest.approx({("root/a", "ada"): faded(3, 2, 1)}, rel=1e-4)


def test_evicted_and_failed_attempts_count_and_a_waiting_job_does_not(shared):
    apply(job("one", "a"))
    run("one", NOW)
    actions.suspend(books.job("one"), by="ada", now=NOW + HOUR)
    assert use(NOW + 5 * HOUR) == pytest.approx({("root/a", "ada"): faded(3, 5, 4)}, rel=1e-4)


def test_what_is_too_old_is_forgotten(shared):
    old = {"leaf": "root/a", "user": "ada", "gpus": 3, "placed_at": NOW - 4000 * HOUR}
    DeletedUse.objects.create(job=1, number=1, ended_at=NOW - 367 * 24 * HOUR, **old)
    DeletedUse.objects.create(job=2, number=1, ended_at=NOW - HOUR, **old)
    sweep.run(NOW)
    assert DeletedUse.objects.get().job == 2


def test_a_raised_half_life_counts_what_had_faded_under_the_former_one(shared, settings):
    """What was used half a year ago counts nothing by a half-life of a week, and a quarter by one of three months."""
    settings.CONVOY_CYCLE = replace(settings.CONVOY_CYCLE, share_half_life_s=WEEK_S)
    old = {"leaf": "root/a", "user": "ada", "gpus": 3, "placed_at": NOW - 4321 * HOUR}
    DeletedUse.objects.create(job=1, number=1, ended_at=NOW - 4320 * HOUR, **old)
    sweep.run(NOW)
    assert use(NOW) == {}
    settings.CONVOY_CYCLE = replace(settings.CONVOY_CYCLE, share_half_life_s=2160 * 3600)
    assert use(NOW) == {("root/a", "ada"): pytest.approx(3 * 3600 / 4, rel=1e-3)}


def test_the_queue_that_used_less_starts_also_after_a_restart(shared):
    apply(job("kept", "b"), job("first", "a"))
    books.cycle(NOW)
    books.sent()
    books.report("first", "Running", now=NOW)
    books.report("kept", "Running", now=NOW + HOUR)
    apply(job("more-a", "a"), at=NOW + HOUR)
    apply(job("more-b", "b"), at=NOW + 2 * HOUR)
    Attempt.objects.filter(job__name="kept").update(placed_at=NOW + 2 * HOUR)
    Attempt.objects.filter(job__name="first").update(placed_at=NOW - 90 * HOUR)
    books.report("first", "Succeeded", now=NOW + HOUR)
    loop._idle_caches.clear()
    books.cycle(NOW + 2 * HOUR)
    assert books.job("more-b").state == "Placed" and books.job("more-a").state == "Queued"


def test_one_users_jobs_do_not_hold_up_anothers(shared):
    apply(*(job(f"many-{i}", "a") for i in range(30)), by="ada")
    apply(job("mine", "a"), by="grace", at=NOW + HOUR)
    books.cycle(NOW + 2 * HOUR)
    assert books.job("mine").state == "Placed" and Job.objects.filter(state="Placed").count() == 2


def test_the_user_is_the_one_who_submitted_it_last(shared):
    apply(job("one", "a"), by="ada")
    apply(job("one", "a", **{"convoy.dev/priority": "1"}), by="grace")
    assert books.job("one").submitted_by == "grace"


def test_the_sum_is_exact_whatever_happens(shared):
    """Random lives; the oracle adds up attempts minute by minute and shares no code."""
    rng, now = Random(4), NOW
    for step in range(40):
        name = f"j{step}"
        apply(job(name, rng.choice("ab")), by=rng.choice(["ada", "grace"]), at=now)
        books.cycle(now)
        books.sent()
        for placed in Job.objects.filter(state="Placed"):
            books.report(placed.name, "Running", now=now)
        now += timedelta(minutes=rng.randint(1, 90))
        for ran in Job.objects.filter(state="Running").order_by("?")[: rng.randint(0, 2)]:
            deed = rng.choice(["Succeeded", "Failed", "suspend"])
            if deed == "suspend":
                actions.suspend(ran, by="ada", now=now)
            else:
                books.report(ran.name, deed, now=now)
            books.gone(ran.name)
        sweep.run(now)
    expected: dict[tuple[str, str], float] = defaultdict(float)
    for attempt in Attempt.objects.select_related("job").filter(ended_at__isnull=False):
        ages = [(now - at).total_seconds() / 3600 for at in (attempt.placed_at, attempt.ended_at)]
        expected[attempt.job.leaf, attempt.job.submitted_by] += faded(attempt.job.gpus, *ages)
    ended = {account: value for account, value in runtimes.load(now).shares.at(now.timestamp()).items() if value > 1e-6}
    assert len(expected) == 4 and ended == pytest.approx(dict(expected), rel=1e-3)


def test_a_tree_that_does_not_share_over_time_loads_nothing():
    books.a_cluster(gpus=6)
    trees.apply(manifest(quota("root", WHOLE, WHOLE, team("a", 0, 6))), by="system", now=NOW)
    apply(job("one", "a"))
    run("one", NOW)
    runs = runtimes.load(NOW)
    assert not runs.open_attempts and runs.use_by_user(NOW.timestamp()).keys() <= {("root/a", "ada")}
    assert isinstance(runs, Runs) and not runs.counts_use


def tree_nodes(user) -> dict[str, dict]:
    return {node["path"]: node for node in client_of(user).get("/api/v1/quota/tree/").json()["nodes"]}


def test_the_tree_and_the_explanation_show_it_and_users_only_to_those_who_run_the_queue(shared, admin):
    at = timezone.now()
    for name, by in (("one", "ada"), ("two", "grace")):
        apply(job(name, "a"), by=by, at=at - 2 * HOUR)
    books.cycle(at - 2 * HOUR)
    books.sent()
    for name in ("one", "two"):
        books.report(name, "Running", now=at - 2 * HOUR)
        books.report(name, "Succeeded", now=at - HOUR)
    apply(*(job(f"wait-{i}", "b") for i in range(3)), by="ada", at=at)
    nodes = tree_nodes(admin)
    assert nodes["root"]["recent_gpu_hours"] == nodes["root/a"]["recent_gpu_hours"] == pytest.approx(6, rel=0.05)
    assert nodes["root/b"]["recent_gpu_hours"] == 0 and {each["user"] for each in nodes["root/a"]["users"]} == {
        "ada",
        "grace",
    }
    assert [each["user"] for each in tree_nodes(person("grace", ("editor", "default")))["root/a"]["users"]] == ["grace"]
    message = explaining.explain_job(books.job("wait-2"), at).message
    assert "root/b has used 0.0 GPU-hours lately (beside it: a 6.0), of which 0.0 are its user's" in message


def test_a_tree_that_does_not_share_over_time_shows_none(admin):
    trees.apply(manifest(quota("root", WHOLE, WHOLE, team("a", 0, 6))), by="system", now=NOW)
    assert {(node["recent_gpu_hours"], *node["users"]) for node in tree_nodes(admin).values()} == {(None,)}


def test_a_run_that_ended_while_the_clock_was_a_year_ahead_outweighs_no_other(shared):
    apply(job("one", "a"))
    run("one", NOW)
    books.report("one", "Succeeded", now=NOW + 365 * 24 * HOUR)
    row = {"job": 77, "number": 1, "leaf": "root/b", "user": "bob", "gpus": 3}
    DeletedUse.objects.create(**row, placed_at=NOW, ended_at=NOW + 2 * HOUR)
    found = use(NOW + 3 * HOUR)
    assert found["root/a", "ada"] == pytest.approx(faded(3, 3, 0), rel=1e-4)
    assert found["root/b", "bob"] == pytest.approx(faded(3, 3, 1), rel=1e-4)


@pytest.mark.parametrize(("began", "hours"), [(365 * 24 * HOUR, 2), (timedelta(), None)], ids=["ahead", "before"])
def test_how_long_a_run_took_is_known_if_all_of_it_was_while_the_clock_was_ahead(shared, began, hours):
    apply(job("one", "a"))
    run("one", NOW + began)
    books.report("one", "Succeeded", now=NOW + 365 * 24 * HOUR + 2 * HOUR)
    estimates = runtimes.load(NOW + 3 * HOUR).estimates
    assert estimates.estimate_runtime("default", 3) == (hours * 3600 if hours else estimates.unknown_s)
