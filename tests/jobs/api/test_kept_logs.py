"""A job's kept logs over REST, and through `convoy logs`: of pods and clusters that are gone, by attempt."""

from uuid import uuid4

import pytest
from django.utils import timezone

from fleet.models import ArchivedLog, AuditEntry, Cluster, EndedPod, Grant, Pod
from fleet.services.logs import reading, recording, storing
from tests.jobs.api.builders import submitted, url
from tests.support.people import client_of, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def job():
    return submitted("llama")


def ended_pod(job, name="llama-master-0", *, attempt=1, role="master", index=0, text=b"", cluster="north"):
    """A pod that has ended, with its log unless that could not be read."""
    now = timezone.now()
    row = Cluster.objects.filter(name=cluster).first() or Cluster.objects.create(
        name=cluster,
        server="https://127.0.0.1:1",
        access={"server": "https://127.0.0.1:1"},
        state="Unknown",
        state_since=now,
        joined_at=now,
    )
    pod = Pod(
        cluster=row, namespace=job.namespace, name=name, uid=str(uuid4()), job_uid=job.uid, attempt=attempt, role=role,
        index=index, phase="Succeeded", created_at=now,
    )  # fmt: skip
    recording.record(row, [pod], now)
    ended = EndedPod.objects.get(uid=pod.uid)
    key, packed = storing.pack(text)
    log = ArchivedLog(pod=ended, number=0, container="pytorch", text_bytes=len(text), key=key)
    reading._keep(ended, reading.Found([(log, packed)] if text else [], [] if text else ["pytorch: no such log"]))
    return pod


def log(client, job, query=""):
    answer = client.get(url(job, f"logs/{query}"))
    return answer.getvalue().decode() if answer.status_code == 200 else answer.json()["detail"]


def test_it_shows_the_log_of_the_primary_pod_of_the_last_attempt_or_of_the_one_that_is_named(as_admin, job):
    ended_pod(job, text=b"first\n", cluster="south")
    ended_pod(job, attempt=2, text=b"2026-01-01T00:00:00Z second\n2026-01-01T00:00:01Z end\n")
    ended_pod(job, "llama-worker-0", attempt=2, role="worker", text=b"worker\n")
    Cluster.objects.all().delete()
    assert log(as_admin, job) == "second\nend\n"
    assert log(as_admin, job, "?tail=1&follow=true") == "end\n"
    assert log(as_admin, job, "?attempt=1") == "first\n"
    assert log(as_admin, job, "?role=worker&index=0") == "worker\n"
    assert log(as_admin, job, "?pod=llama-worker-0&attempt=2") == "worker\n"


def test_it_names_what_there_is_where_there_is_no_such_log(as_admin, job):
    assert "no master pod 0; it has none yet" in log(as_admin, job)
    ended_pod(job, text=b"first\n")
    assert "no pod x; it has llama-master-0" in log(as_admin, job, "?pod=x")
    assert "no master pod 0 of attempt 7" in log(as_admin, job, "?attempt=7")


def test_it_says_why_a_log_is_not_kept(as_admin, job):
    ended_pod(job)
    assert log(as_admin, job) == "no log of llama-master-0 is kept: pytorch: no such log"


def test_a_pod_whose_cluster_is_silent_is_shown_from_what_is_kept(as_admin, job):
    pod = ended_pod(job, text=b"first\n")
    pod.save()
    job.attempt = 1
    job.save(update_fields=["attempt"])
    assert log(as_admin, job) == "first\n"
    Cluster.objects.update(state="Ready")
    assert log(as_admin, job) == "first\n"


def test_it_lists_the_pods_that_have_ended(as_admin, job):
    ended_pod(job, text=b"first\n", cluster="south")
    ended_pod(job, attempt=2)
    Cluster.objects.all().delete()
    rows = as_admin.get(url(job, "ended-pods/")).json()["results"]
    shown = [
        (row["attempt"], row["cluster"], row["phase"], row["log"], row["log_bytes"], row["message"]) for row in rows
    ]
    assert shown == [
        (2, "north", "Succeeded", "Lost", None, "pytorch: no such log"),
        (1, "south", "Succeeded", "Kept", 6, ""),
    ]


def test_reading_takes_a_role_in_the_namespace_and_is_audited(job):
    ended_pod(job, text=b"first\n")
    otto = person("otto", (Grant.Role.VIEWER, "speech"))
    tina = person("tina", (Grant.Role.VIEWER, "vision"))
    assert client_of(otto).get(url(job, "logs/")).status_code == 404
    assert client_of(otto).get(url(job, "ended-pods/")).status_code == 404
    assert log(client_of(tina), job) == "first\n"
    assert AuditEntry.objects.filter(kind__endswith="/log", actor="tina").exists()
