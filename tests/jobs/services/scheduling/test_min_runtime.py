"""A min-runtime through the rows: the reason says until when; a restart, a failover and acts of users change nothing."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from fleet.models import Hold
from jobs.models import Job, Work
from jobs.services.follow import sweep
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


def apply_tree(runtime: str = "10m") -> None:
    root = quota("root", WHOLE, WHOLE, team("a", 3, 6), team("b", 3, 6, attributes={"min-runtime": runtime}))
    trees.apply(manifest(root), by="system", now=NOW)


@pytest.fixture
def claimed():
    """Both jobs of b were admitted now, and fill everything; a was promised half, and asks for it a minute later."""
    books.a_cluster(gpus=6)
    apply_tree()
    books.apply(job("old", "b"), job("young", "b"))
    books.cycle(NOW)
    books.sent()
    Job.objects.update(state="Running", started_at=NOW + MINUTE / 2)
    books.apply(job("mine", "a"))
    books.cycle(NOW + MINUTE)


def states() -> dict[str, str]:
    return dict(Job.objects.values_list("name", "state"))


def test_the_claimant_is_told_until_when_and_none_leaves_before(claimed):
    reason = books.job("mine").reason
    assert reason["code"] == "WaitingForReclaim" and "protected by min-runtime until" in reason["message"]
    assert datetime.fromisoformat(reason["quota"]["protected_until"]) == NOW + 10 * MINUTE
    for minutes in (2, 9.9):
        books.cycle(NOW + minutes * MINUTE)
        assert states() == {"old": "Running", "young": "Running", "mine": "Queued"}
    books.cycle(NOW + 10 * MINUTE)
    assert sorted(states().values()) == ["Queued", "Reclaiming", "Running"]
    assert "to give back what root/a was promised" in books.job("mine").reason["message"]


def test_the_reason_is_not_written_again_in_each_cycle(claimed):
    version = books.job("mine").resource_version
    for minutes in (2, 3, 4):
        books.cycle(NOW + minutes * MINUTE)
    assert books.job("mine").resource_version == version


def test_a_process_that_starts_anew_decides_the_same(claimed):
    loop._idle_caches.clear()
    books.cycle(NOW + 5 * MINUTE)
    assert books.job("mine").reason["quota"]["protected_until"] == (NOW + 10 * MINUTE).isoformat()
    loop._idle_caches.clear()
    books.cycle(NOW + 10 * MINUTE)
    assert sorted(states().values()) == ["Queued", "Reclaiming", "Running"]


def test_the_sweep_requests_the_cycle_that_ends_the_protection(claimed):
    loop._idle_caches.clear()
    sweep.run(NOW + 11 * MINUTE)
    loop.run(lambda: NOW + 11 * MINUTE)
    assert sorted(states().values()) == ["Queued", "Reclaiming", "Running"]


def test_what_becomes_free_meanwhile_goes_to_the_claimant_and_to_no_borrower(claimed):
    books.apply(job("third", "b", **{"convoy.dev/priority": "9"}))
    books.end("old")
    books.cycle(NOW + 2 * MINUTE)
    assert books.job("mine").state == "Placed" and books.job("third").state == "Queued"
    assert books.job("young").state == "Running"


def test_a_job_that_a_user_suspends_meanwhile_counts_once(claimed):
    Job.objects.filter(name="old").update(
        state=Job.State.RECLAIMING, reclaim={"until": (NOW + 2 * MINUTE).isoformat(), "message": "x"}
    )
    loop._idle_caches[0].invalidate()
    books.cycle(NOW + 2 * MINUTE)
    books.cycle(NOW + 3 * MINUTE)
    assert books.used("root")[GPU] == 6


def test_a_claimant_that_goes_away_stops_no_one(claimed):
    Job.objects.filter(name="mine").delete()
    loop._idle_caches[0].invalidate()
    books.cycle(NOW + 20 * MINUTE)
    assert states() == {"old": "Running", "young": "Running"}


def test_an_edit_of_the_tree_ends_the_protection_at_once(claimed):
    apply_tree("0s")
    books.cycle(NOW + 2 * MINUTE)
    assert sorted(states().values()) == ["Queued", "Reclaiming", "Running"]


def test_the_protection_counts_from_the_admission_and_not_from_a_later_attempt(claimed):
    """Else a job that fails over again and again would never give back what it borrows."""
    Job.objects.filter(state="Running").update(attempt=2, started_at=NOW + 9 * MINUTE)
    Work.objects.update(attempt=2)
    Hold.objects.update(attempt=2)
    loop._idle_caches[0].invalidate()
    books.cycle(NOW + 10 * MINUTE)
    assert sorted(states().values()) == ["Queued", "Reclaiming", "Running"]


def test_jobs_that_an_older_version_placed_count_from_their_start(claimed):
    Job.objects.update(charged_at=None)
    loop._idle_caches.clear()
    books.cycle(NOW + 10 * MINUTE)
    assert sorted(states().values()) == ["Queued", "Running", "Running"]
    books.cycle(NOW + 10.5 * MINUTE)
    assert sorted(states().values()) == ["Queued", "Reclaiming", "Running"]


def test_a_dry_run_says_when_the_other_would_leave(claimed):
    Job.objects.filter(name="mine").delete()
    outcome = dry_runs.preview_outcomes(manifests.parse(job("next", "a").encode()), by="test", now=NOW + MINUTE)[0]
    assert outcome.outcome == "Reclaims" and [each.not_before for each in outcome.reclaims] == [NOW + 10 * MINUTE]


def test_a_preview_of_the_tree_says_when_a_job_may_be_evicted_at_the_earliest(claimed):
    books.apply(job("more", "a"))
    root = quota("root", WHOLE, WHOLE, team("a", 6, 6), team("b", 0, 6, attributes={"min-runtime": "10m"}))
    lines = previews.of_manifest(manifest(root), by="system", now=NOW + MINUTE).effect.reclaimed
    assert lines and {line.not_before for line in lines} == {NOW + 10 * MINUTE}


def test_jobs_that_ran_before_the_first_tree_count_from_their_start():
    books.a_cluster(gpus=6)
    books.apply(job("old", "b"), job("young", "b"))
    books.cycle(NOW)
    Job.objects.update(state="Running", started_at=NOW - 9 * MINUTE)
    apply_tree()
    assert {row.charged_at for row in Job.objects.all()} == {NOW - 9 * MINUTE}


def test_the_reason_names_no_jobs_of_other_teams(claimed):
    Job.objects.filter(name="mine").update(namespace="secret", reason=None)
    loop._idle_caches.clear()
    books.cycle(NOW + 2 * MINUTE)
    message = books.job("mine").reason["message"]
    assert "protected by min-runtime until" in message and "old" not in message and "young" not in message
