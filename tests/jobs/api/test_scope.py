"""Events of a part of the fleet: of a cluster and the jobs there, of a queue with all below it."""

import pytest

from jobs.models import Job
from tests.jobs.api.builders import submitted

pytestmark = pytest.mark.django_db


@pytest.fixture
def jobs(north):
    for name, leaf, cluster in (
        ("a", "root/vision/prod", north),
        ("b", "root/vision", None),
        ("c", "root/visionary", None),
    ):
        Job.objects.filter(pk=submitted(name).pk).update(leaf=leaf, cluster=cluster)


def told(client, query: str) -> set[str]:
    return {each["regarding"]["name"] for each in client.get(f"/api/v1/events/?{query}").json()["results"]}


@pytest.mark.parametrize(
    ("query", "about"),
    [("queue=root/vision", "ab"), ("queue=root/visio", ""), ("queue=root&namespace=speech", ""), ("queue=root", "abc")],
)
def test_it_tells_what_happened_in_a_queue(as_admin, jobs, query, about):
    assert told(as_admin, query) == set(about)


def test_it_tells_what_happened_to_a_cluster_and_on_it(as_admin, jobs):
    as_admin.post("/api/v1/clusters/north/cordon/")
    assert told(as_admin, "cluster=north") == {"north", "a"}
    assert told(as_admin, "cluster=south") == set()
