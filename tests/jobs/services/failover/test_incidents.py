"""Failed attempts become incidents: one for each cause, whoever it hits, and none twice."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from fleet.core import tags
from fleet.models import Cluster
from jobs.core.failover.causes import Cause, Failure, PodEnd
from jobs.core.failover.incidents import WINDOW
from jobs.models import Attempt, Incident, Job
from jobs.services.failover import evidence, incidents
from jobs.services.inspect import incidents as stories
from jobs.services.submission.changes import actions
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
NOW = timezone.now().replace(microsecond=0)
S, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


@pytest.fixture(autouse=True)
def fleet() -> None:
    for name in ("north", "south"):
        books.a_cluster(name, gpus=64)


def silence(name: str, at: datetime, *, reason: str = "ClusterNotReachable", state: str = "Unknown") -> None:
    """The first look failed a minute before, and the grace is over now."""
    Cluster.objects.filter(name=name).update(
        state=state, state_reason=reason, state_message="no answer", state_since=at, failing_since=at - MINUTE
    )


def revive(name: str) -> None:
    Cluster.objects.filter(name=name).update(state="Ready", state_reason="ClusterReady", failing_since=None)


def lost(job: str, at: datetime, *, cluster: str = "north", **fields: Any) -> Attempt:
    """An attempt of the job that ended like this; by default its cluster lost it."""
    if not Job.objects.filter(name=job).exists():
        books.apply(pytorch_job(job))
    row = books.job(job)
    number = Attempt.objects.filter(job=row).count() + 1
    Job.objects.filter(pk=row.pk).update(state="Moving", attempt=number)
    known = {"placed_at": at - 30 * MINUTE, "started_at": at - 20 * MINUTE, "ended_at": at, "gpus": 8}
    failed = {"outcome": "Lost", "cause": "Infrastructure"}
    return Attempt.objects.create(job=row, number=number, cluster_name=cluster, **known | failed | fields)


def runs_again(job: str, at: datetime, cluster: str = "south") -> None:
    row = books.job(job)
    Attempt.objects.create(job=row, number=row.attempt + 1, cluster_name=cluster, placed_at=at - S, started_at=at)
    Job.objects.filter(pk=row.pk).update(state="Running", attempt=row.attempt + 1)


def kinds() -> dict[str, int]:
    """How many attempts each incident ended, by kind."""
    return {row.kind: row.attempts.count() for row in Incident.objects.all()}


def test_a_cluster_that_falls_silent_is_one_incident_with_all_that_left_it():
    silence("north", NOW)
    incidents.run(NOW)
    assert kinds() == {"ClusterSilent": 0}
    for name in ("llama", "bert"):
        lost(name, NOW + MINUTE)
    incidents.run(NOW + 2 * MINUTE)
    incidents.run(NOW + 3 * MINUTE)
    assert kinds() == {"ClusterSilent": 2}
    (incident,) = Incident.objects.all()
    assert (incident.began_at, incident.declared_at, incident.over_at) == (NOW - MINUTE, NOW, None)


def test_it_is_over_when_the_cluster_is_ready_and_the_next_silence_is_another():
    silence("north", NOW)
    incidents.run(NOW)
    revive("north")
    incidents.run(NOW + MINUTE)
    silence("north", NOW + 10 * MINUTE)
    incidents.run(NOW + 10 * MINUTE)
    lost("llama", NOW + 11 * MINUTE)
    incidents.run(NOW + 11 * MINUTE)
    old, new = Incident.objects.order_by("began_at")
    assert (old.over_at, old.attempts.count()) == (NOW + MINUTE, 0)
    assert (new.over_at, new.attempts.count()) == (None, 1)


def test_what_left_before_the_cluster_was_ready_again_belongs_to_the_outage_that_is_over():
    silence("north", NOW)
    incidents.run(NOW)
    lost("llama", NOW + MINUTE)
    revive("north")
    incidents.run(NOW + 2 * MINUTE)
    assert kinds() == {"ClusterSilent": 1}


@pytest.mark.parametrize(
    ("state", "reason", "kind"),
    [
        ("NotReady", "ClusterNotReady", "ClusterUnhealthy"),
        ("NotReady", "CredentialsRefused", "CredentialsRefused"),
        ("Unknown", "CredentialsUnreadable", "CredentialsRefused"),
        ("Unknown", "DisruptionSuspected", "DisruptionSuspected"),
    ],
)
def test_an_outage_says_what_it_turns_out_to_be(state, reason, kind):
    silence("north", NOW)
    incidents.run(NOW)
    silence("north", NOW, state=state, reason=reason)
    incidents.run(NOW + MINUTE)
    assert kinds() == {kind: 0}


def test_a_detached_cluster_has_no_outage_any_more():
    silence("north", NOW)
    incidents.run(NOW)
    Cluster.objects.filter(name="north").delete()
    lost("llama", NOW + 5 * MINUTE)
    incidents.run(NOW + 4 * MINUTE)
    incidents.run(NOW + 6 * MINUTE)
    assert kinds() == {"ClusterSilent": 0, "ClusterDetached": 1}


def test_leaving_a_drained_cluster_is_no_outage():
    key, effect = tags.DRAIN
    Cluster.objects.filter(name="north").update(taints=[{"key": key, "effect": effect, "timeAdded": NOW.isoformat()}])
    lost("llama", NOW)
    lost("bert", NOW + S, cluster="south")
    incidents.run(NOW + MINUTE)
    assert kinds() == {"ClusterDrained": 1, "ClusterTainted": 1}


def pods(*nodes: str) -> list[dict[str, Any]]:
    return [{"pod": f"p-{node}", "phase": "Failed", "node": node} for node in nodes]


def test_gangs_that_lost_the_same_node_are_one_incident_and_those_of_another_node_not():
    failed = {"outcome": "Failed", "cause": "Infrastructure"}
    lost("llama", NOW, evidence=pods("n1"), **failed)
    lost("bert", NOW + MINUTE, evidence=pods("n1"), **failed)
    lost("gpt", NOW + MINUTE, evidence=pods("n2"), **failed)
    lost("vit", NOW + MINUTE, cluster="south", evidence=pods("n1"), **failed)
    incidents.run(NOW + 2 * MINUTE)
    found = {(row.cluster_name, *row.nodes): row.attempts.count() for row in Incident.objects.all()}
    assert found == {("north", "n1"): 2, ("north", "n2"): 1, ("south", "n1"): 1}


def test_failures_of_a_program_are_one_incident_of_their_job_while_it_goes_on_failing():
    for minutes in (0, 5, 14):
        lost("llama", NOW + minutes * MINUTE, outcome="Failed", cause="CodeError")
        incidents.run(NOW + minutes * MINUTE)
    lost("bert", NOW, outcome="Failed", cause="OutOfMemory")
    incidents.run(NOW + 14 * MINUTE)
    assert sorted(row.attempts.count() for row in Incident.objects.filter(kind="JobFailed")) == [1, 3]


def test_it_stays_open_as_long_as_a_job_waits_however_long_the_backoff():
    lost("llama", NOW, outcome="Failed", cause="CodeError")
    incidents.run(NOW)
    incidents.run(NOW + 2 * WINDOW)
    assert Incident.objects.get().over_at is None
    runs_again("llama", NOW + 3 * WINDOW)
    incidents.run(NOW + 3 * WINDOW)
    assert Incident.objects.get().over_at == NOW + 3 * WINDOW
    lost("llama", NOW + 6 * WINDOW, outcome="Failed", cause="CodeError")
    incidents.run(NOW + 6 * WINDOW)
    assert Incident.objects.count() == 2


def test_evictions_that_do_not_follow_closely_are_another_incident_though_a_job_still_waits():
    lost("llama", NOW, outcome="Failed", cause="Evicted")
    incidents.run(NOW)
    lost("bert", NOW + 2 * WINDOW, outcome="Failed", cause="Evicted")
    incidents.run(NOW + 2 * WINDOW)
    old, new = Incident.objects.order_by("began_at")
    assert [old.over_at, new.over_at] == [NOW + 2 * WINDOW, None]
    assert [row.attempts.get().job.name for row in (old, new)] == ["llama", "bert"]


def test_an_attempt_whose_cause_turns_out_to_be_another_changes_its_incident():
    attempt = lost("llama", NOW, outcome="Failed", cause="CodeError")
    incidents.run(NOW)
    node = PodEnd("p0", "Failed", reason="NodeLost", node="n1", node_ready=False)
    evidence.record(books.job("llama"), attempt.number, Failure(Cause.INFRASTRUCTURE, (node,)), NOW)
    incidents.run(NOW + S)
    assert kinds() == {"NodeLost": 1}


def test_an_attempt_that_ends_well_belongs_to_none():
    lost("llama", NOW, outcome="Succeeded", cause="")
    lost("bert", NOW, outcome="Reclaimed", cause="")
    incidents.run(NOW)
    assert kinds() == {}


def test_a_second_pass_assigns_nothing_twice():
    lost("llama", NOW)
    incidents.run(NOW)
    incidents.run(NOW)
    assert kinds() == {"ClusterTainted": 1}


def test_it_asks_no_more_for_many_jobs_of_one_cluster(django_assert_max_num_queries):
    silence("north", NOW)
    incidents.run(NOW)
    books.apply(*[pytorch_job(f"job-{number}") for number in range(50)])
    for number in range(50):
        lost(f"job-{number}", NOW + S)
    with django_assert_max_num_queries(20):
        incidents.run(NOW + MINUTE)
    assert kinds() == {"ClusterSilent": 50}


def test_it_is_forgotten_with_the_events_and_not_gathered_again(settings):
    keep = timedelta(seconds=settings.CONVOY_RETENTION.events_s)
    lost("llama", NOW, outcome="Failed", cause="CodeError")
    incidents.run(NOW)
    runs_again("llama", NOW + S)
    incidents.run(NOW + WINDOW + S)
    over = NOW + WINDOW + S
    incidents.run(over + keep)
    assert Incident.objects.count() == 1
    incidents.run(over + keep + S)
    incidents.run(over + keep + MINUTE)
    assert Incident.objects.count() == 0
    assert Attempt.objects.filter(number=1).exists()


def test_an_incident_of_a_deleted_job_goes_with_it_and_an_outage_stays():
    silence("north", NOW)
    incidents.run(NOW)
    lost("llama", NOW, outcome="Failed", cause="CodeError")
    lost("bert", NOW)
    incidents.run(NOW + S)
    for name in ("llama", "bert"):
        actions.delete(books.job(name), by="test", now=NOW)
    incidents.run(NOW + 2 * S)
    assert kinds() == {"ClusterSilent": 0}


def test_an_incident_that_is_over_is_not_shown_once_its_job_is_deleted():
    lost("llama", NOW, outcome="Failed", cause="CodeError")
    incidents.run(NOW)
    Job.objects.update(state="Failed")
    incidents.run(NOW + 2 * WINDOW)
    assert stories.visible(None).count() == 1
    Job.objects.all().delete()
    assert stories.visible(None).count() == 0


def test_an_outage_longer_than_events_are_kept_is_kept_from_its_end(settings):
    keep = timedelta(seconds=settings.CONVOY_RETENTION.events_s)
    silence("north", NOW)
    incidents.run(NOW)
    revive("north")
    for at in (NOW + 2 * keep, NOW + 2 * keep + MINUTE):
        incidents.run(at)
    assert kinds() == {"ClusterSilent": 0}
    incidents.run(NOW + 3 * keep + MINUTE)
    assert kinds() == {}


def test_a_pass_asks_no_more_when_many_incidents_are_over(django_assert_max_num_queries):
    for number in range(20):
        lost(f"job-{number}", NOW, outcome="Failed", cause="CodeError")
    incidents.run(NOW)
    Job.objects.update(state="Failed")
    incidents.run(NOW + 2 * WINDOW)
    with django_assert_max_num_queries(8):
        incidents.run(NOW + 3 * WINDOW)


def test_the_story_says_who_was_stopped_for_how_long_and_who_waits():
    silence("north", NOW)
    incidents.run(NOW)
    lost("llama", NOW + 5 * MINUTE)
    lost("bert", NOW + 5 * MINUTE)
    runs_again("llama", NOW + 9 * MINUTE)
    revive("north")
    incidents.run(NOW + 6 * MINUTE)
    story = stories.story(Incident.objects.get(), None, NOW + 14 * MINUTE)
    stopped = {each.name: (each.stopped_s / 60, each.ran_s / 60, each.waits) for each in story.affected}
    assert stopped == {"llama": (10, 14, False), "bert": (15, 14, True)}
    assert story.gpu_minutes_stopped == 8 * 25 and story.gpu_minutes_repeated == 8 * 28
    assert story.stage == "Recovering"


def test_the_story_names_no_job_of_a_namespace_that_the_reader_may_not_see():
    silence("north", NOW)
    incidents.run(NOW)
    lost("llama", NOW + S)
    incidents.run(NOW + S)
    incident = Incident.objects.get()
    story = stories.story(incident, {"vision"}, NOW + MINUTE)
    assert (list(story.affected), story.other_jobs) == ([], 1)


def test_the_story_of_an_open_outage_says_until_when_each_job_stays():
    books.apply(pytorch_job("llama"))
    books.cycle()
    where = books.job("llama").cluster
    assert where is not None
    silence(where.name, NOW)
    taint = {"key": "cluster.karmada.io/unreachable", "value": "", "effect": "NoExecute", "timeAdded": NOW.isoformat()}
    Cluster.objects.filter(pk=where.pk).update(taints=[taint])
    incidents.run(NOW)
    story = stories.story(Incident.objects.get(), None, NOW)
    (stays,) = story.staying
    assert stays.name == "llama" and stays.leaves_at is not None and stays.leaves_at > NOW
