"""Spot pools and reclaimed nodes over REST: with pods that saved and pods that lost, and names only for who may read them."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import Cluster, Grant, Node
from jobs.models import Attempt, Notice
from tests.support import books
from tests.support.people import client_of, person
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
PATH = "/api/v1/clusters/north/spot/"


@pytest.fixture
def llama():
    books.a_cluster()
    north, now = Cluster.objects.get(name="north"), timezone.now()
    labels = {"karpenter.sh/capacity-type": "spot", "karpenter.sh/nodepool": "cheap"}
    for name, ready in (("s1", True), ("s2", False)):
        Node.objects.create(cluster=north, name=name, ready=ready, labels=labels, allocatable={books.GPU: 8})
    books.apply(pytorch_job("llama"))
    books.cycle()
    job = books.job("llama")
    Attempt.objects.update(started_at=now - timedelta(minutes=10))
    about = {"job": job, "attempt": 1, "cluster_name": "north", "node": "s1", "cause": "aws-spot", "scope": "Job"}
    at = now - timedelta(minutes=5)
    for pod, step, left_s in (("llama-master-0", 40, 30), ("llama-worker-0", None, 90)):
        times = {"at": at, "deadline": at + timedelta(minutes=2), "left_at": at + timedelta(seconds=left_s)}
        Notice.objects.create(**about, **times, notice_id="n", pod=pod, saved_step=step)
    Notice.objects.create(**about | {"node": ""}, **times, notice_id="elsewhere", pod="llama-worker-0")
    return job


def test_it_shows_pools_and_what_each_reclaim_cost(as_admin, llama):
    answer = as_admin.get(PATH).json()
    assert answer["pools"] == [{"name": "cheap", "nodes": 2, "ready": 1, "gpus": 16}]
    [reclaim] = answer["reclaims"]
    assert (reclaim["node"], reclaim["pool"], reclaim["notice_s"]) == ("s1", "cheap", 120.0)
    assert (reclaim["saved"], reclaim["lost"]) == (1, 1)
    gpus = {role["name"]: role["request"].get(books.GPU, 0) for role in llama.roles}["worker"]
    assert reclaim["lost_gpu_minutes"] == 1.0 * gpus > 0
    assert {pod["pod"]: pod["outcome"] for pod in reclaim["pods"]} == {
        "llama-master-0": "Saved", "llama-worker-0": "Lost",
    }  # fmt: skip
    assert {pod["name"] for pod in reclaim["pods"]} == {"llama"}


def test_it_names_no_job_of_a_namespace_that_the_reader_may_not_see(llama):
    other = client_of(person("mal", (Grant.Role.VIEWER, "team-b")))
    [reclaim] = other.get(PATH).json()["reclaims"]
    assert (reclaim["node"], reclaim["lost"], len(reclaim["pods"])) == ("s1", 1, 2)
    assert "llama" not in str(reclaim) and str(llama.uid) not in str(reclaim)


def test_it_asks_the_database_no_more_often_for_more(as_admin, llama, django_assert_max_num_queries):
    row = Notice.objects.exclude(node="").first()
    for number in range(20):
        Notice.objects.create(
            job=row.job, attempt=1, cluster_name="north", node=f"s{number}", cause="x", scope="Pods", pod="p",
            at=row.at, deadline=row.deadline, notice_id=f"more-{number}",
        )  # fmt: skip
    with django_assert_max_num_queries(12):
        assert len(as_admin.get(PATH).json()["reclaims"]) == 20


def test_a_notice_of_a_time_that_is_no_time_is_not_the_latest(as_admin, llama):
    row = Notice.objects.exclude(node="").first()
    about = {"job": row.job, "attempt": 1, "cluster_name": "north", "node": "s1", "cause": "x", "scope": "Pods"}
    later = {"at": row.at + timedelta(days=9999), "deadline": row.at + timedelta(days=9999)}
    Notice.objects.create(**about, **later, pod="p", notice_id="forged")
    [reclaim] = as_admin.get(PATH).json()["reclaims"]
    assert reclaim["cause"] == "aws-spot"


def test_it_knows_no_cluster_that_is_not_there(as_admin):
    assert as_admin.get("/api/v1/clusters/nowhere/spot/").status_code == 404
