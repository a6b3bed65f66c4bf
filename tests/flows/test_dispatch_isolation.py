"""A member that does not answer holds a part of a worker's threads, never all: what is for other members goes on."""

from functools import partial

import pytest
import yaml
from django.utils import timezone

from fleet.models import Cluster
from fleet.services.members import member_clients
from jobs.models import Job, Work
from jobs.services.follow import sweep
from tests.support.black_hole import black_hole, swallow
from tests.support.worker import settle
from tests.support.world import POLICY, World, pytorch_job

MANY = 200
ANSWER_S = 60.0
"""After which a request of dispatch gives up, where nothing but another one may make room for the bystander."""


def on(cluster: str, name: str) -> str:
    """A job of one pod that goes nowhere else."""
    policy = yaml.safe_load(POLICY)
    policy["metadata"]["name"] = f"to-{name}"
    policy["spec"]["placement"]["clusterAffinity"] = {"clusterNames": [cluster]}
    policy["spec"]["resourceSelectors"] = [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": name}]
    return yaml.safe_dump(policy) + "\n---\n" + pytorch_job(name, workers=0)


def is_sent(name: str) -> bool:
    uid = Job.objects.get(name=name).uid
    return Work.objects.filter(job_uid=uid, state=Work.State.APPLIED).exists()


@pytest.fixture
def fleet(transactional_db, worker, tmp_path):
    """Members that serve their API alone, and workers; no watcher and no beat."""
    made = World(tmp_path)
    yield made
    made.stop()
    settle()


@pytest.fixture
def hole():
    with black_hole() as server:
        yield server


@pytest.fixture
def patient(monkeypatch):
    monkeypatch.setattr(member_clients.client, "__kwdefaults__", {"timeout_s": ANSWER_S})


def test_a_member_that_does_not_answer_delays_no_other(fleet, patient, hole):
    fleet.still("north", 8)
    fleet.still("hole", 8)
    swallow(Cluster.objects.get(name="hole"), hole)
    fleet.apply(*(on("hole", f"lost-{i}") for i in range(MANY)))
    waiting = Work.objects.filter(cluster__name="hole")
    fleet.until(lambda: waiting.count() == MANY, "all are placed")
    fleet.until(lambda: waiting.exclude(claim="").exists(), "a worker has begun to talk to it")
    fleet.apply(on("north", "bystander"))
    fleet.until(partial(is_sent, "bystander"), "the bystander is sent", patience_s=ANSWER_S)
    assert not waiting.filter(state=Work.State.APPLIED).exists()


def test_neither_do_removals_from_it(fleet, patient, hole):
    fleet.still("north", 8)
    fleet.still("hole", 8)
    fleet.apply(*(on("hole", f"kept-{i}") for i in range(12)))
    works = Work.objects.filter(cluster__name="hole")
    fleet.until(lambda: works.filter(state=Work.State.APPLIED).count() == 12, "all run")
    swallow(Cluster.objects.get(name="hole"), hole)
    for i in range(12):
        fleet.delete(f"kept-{i}")
    fleet.until(lambda: works.exclude(claim="").exists(), "a worker has begun to talk to it")
    fleet.apply(on("north", "bystander"))
    fleet.until(partial(is_sent, "bystander"), "the bystander is sent", patience_s=ANSWER_S)


def test_its_circuit_opens_and_closes_with_the_first_answer(fleet, hole):
    fleet.still("hole", 8)
    cluster = Cluster.objects.get(name="hole")
    server = cluster.server
    swallow(cluster, hole)
    fleet.apply(*(on("hole", f"waits-{i}") for i in range(6)))
    opened = Cluster.objects.filter(name="hole", circuit_opened_at__isnull=False)
    fleet.until(opened.exists, "the circuit is open")
    fleet.until(lambda: all("every 10 s" in job.reason["message"] for job in Job.objects.all()), "each job says why")
    swallow(cluster, server)
    Cluster.objects.update(circuit_probe_at=timezone.now())
    sweep.run(timezone.now())
    sent = Work.objects.filter(state=Work.State.APPLIED)
    fleet.until(lambda: sent.count() == 6, "all are sent at once, not at their next try")
    assert not opened.exists()
