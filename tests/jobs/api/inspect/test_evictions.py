"""A drain has a pace of its own cluster, and says how many jobs are left."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.core.security.token_scopes import Scope
from fleet.models import Cluster, Event, Pod
from fleet.services.authorization import access
from fleet.services.clusters import clusters, node_exclusions
from jobs.models import Job, Work
from jobs.services.failover.eviction_rate import PER_MINUTE
from jobs.services.follow.timeouts import health
from jobs.services.inspect import explaining
from tests.support import books
from tests.support.people import client_of, person
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


def drained(pace: str = "", jobs: int = 5) -> Cluster:
    north = books.a_cluster(gpus=80)
    books.apply(*(pytorch_job(f"job{number}", workers=0) for number in range(jobs)))
    books.cycle()
    books.sent()
    if pace:
        clusters.set_labels(north, {PER_MINUTE: pace}, by="ada", now=timezone.now())
    return clusters.drain(north, by="ada", now=timezone.now() - timedelta(hours=1))


def pass_at(now) -> None:
    Cluster.objects.update(looked_at=now)
    health.check(now)


def progress(client, name: str = "north"):
    answer = client.get(f"/api/v1/clusters/{name}/evictions/")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_drain_goes_at_the_pace_of_its_cluster_and_says_how_far_it_is(as_viewer):
    drained("2")
    now = timezone.now()
    assert progress(as_viewer) == {
        "cluster": "north", "drained": True, "jobs_left": 5, "copies_left": 5, "left_last_minute": 0, "per_minute": 2,
        "minutes_left": 3,
    }  # fmt: skip
    for _ in range(3):
        pass_at(now)
    shown = progress(as_viewer)
    assert (shown["jobs_left"], shown["copies_left"], shown["left_last_minute"], shown["minutes_left"]) == (3, 5, 2, 2)
    stays = Job.objects.filter(state__in=Job.ON_MEMBER).first()
    why = explaining.explain_job(stays, now + timedelta(seconds=1)).message
    assert (
        f"it is to leave north: the next leave at {now + timedelta(minutes=1):%H:%M:%S} UTC, since 2 jobs a minute"
        in why
    )
    assert "it is to leave" not in explaining.explain_job(stays, now + timedelta(seconds=61)).message
    assert PER_MINUTE in Event.objects.get(reason="EvictionsLimited").message
    pass_at(now + timedelta(seconds=61))
    assert progress(as_viewer)["jobs_left"] == 1
    Work.objects.filter(job_uid__in=Job.objects.filter(state="Moving").values("uid")).update(state="Gone")
    assert progress(as_viewer)["copies_left"] == 1


@pytest.mark.parametrize("pace", ["", "0", "many", "1e3", "9" * 30])
def test_a_label_that_is_no_pace_leaves_it_to_the_setting(pace, as_viewer, settings):
    drained(pace)
    assert progress(as_viewer)["per_minute"] == settings.CONVOY_FAILOVER.evictions_per_minute
    pass_at(timezone.now())
    assert progress(as_viewer)["jobs_left"] == 0


def test_jobs_that_ended_or_run_elsewhere_are_not_left(as_viewer):
    drained(jobs=3)
    books.end("job0")
    Job.objects.filter(name="job1").update(cluster=books.a_cluster("south"))
    assert progress(as_viewer)["jobs_left"] == 1


def test_there_is_nothing_to_say_of_a_cluster_that_is_not_there(as_viewer):
    assert as_viewer.get("/api/v1/clusters/nowhere/evictions/").status_code == 404


def test_a_node_names_the_jobs_that_its_drain_moves_to_those_who_read_them(as_viewer):
    north = books.a_cluster(gpus=80)
    books.apply(pytorch_job("llama", workers=0))
    books.cycle()
    books.sent()
    job, now = books.job("llama"), timezone.now()
    pod = {"namespace": "default", "name": "llama-0", "uid": "1", "phase": "Running", "created_at": now}
    Pod.objects.create(cluster=north, job_uid=job.uid, attempt=1, node="node", **pod)
    url = "/api/v1/clusters/north/nodes/node/evictions/"
    tina = person("tina", ("viewer", "default"))
    shown = client_of(tina).get(url).json()
    named = {"id": str(job.uid), "kind": "PyTorchJob", "namespace": "default", "name": "llama", "leaves": True}
    assert (shown["drained"], shown["jobs_left"], shown["pods_left"], shown["jobs"]) == (False, 1, 1, [named])
    _, text = access.mint(tina, "test", life=None, now=now, scope=Scope(kinds=frozenset({"Cluster"})))
    for_clusters = client_of(tina)
    for_clusters.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    by_token = for_clusters.get(url).json()
    assert (by_token["jobs_left"], by_token["jobs"]) == (1, []), "a token for clusters alone reads no jobs"
    stranger = as_viewer.get(url).json()
    assert (stranger["jobs_left"], stranger["jobs"]) == (1, [])
    node_exclusions.drain(north, "node", "", by="ada", now=now)
    assert as_viewer.get(url).json()["drained"]
    pass_at(now)
    shown = as_viewer.get(url).json()
    assert (shown["jobs_left"], shown["pods_left"]) == (0, 1), "it has left, and its pod may still save its work"
    assert progress(as_viewer)["left_last_minute"] == 1, "at the pace of its cluster"
    Pod.objects.update(phase="Succeeded")
    assert as_viewer.get(url).json()["pods_left"] == 0
    assert as_viewer.get(url.replace("/node/", "/none/")).status_code == 404
