"""A volume claim holds checkpoints: it outlives every suspension, move and, unless its owner says otherwise, its jobs."""

import pytest
import yaml
from django.utils import timezone

from fleet.kube.resources import CONFIG_MAPS, PYTORCH_JOBS, VOLUME_CLAIMS
from fleet.member.errors import MemberMissing
from jobs.core.failover.rules import Outcome, PurgeMode
from jobs.core.reasons import Code, Reason
from jobs.models import Job
from jobs.services.failover import failover
from jobs.services.submission.changes import actions
from tests.support import books
from tests.support.passive import passive_member
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
CLAIM = VOLUME_CLAIMS.path("default", "checkpoints")


@pytest.fixture
def member(tmp_path):
    with passive_member(tmp_path) as made:
        yield made


def claim(**annotations: str) -> str:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "checkpoints", "annotations": annotations}
    return yaml.safe_dump({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})


def job() -> str:
    body = yaml.safe_load(pytorch_job("llama", config_map="settings"))
    for replica in body["spec"]["pytorchReplicaSpecs"].values():
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "checkpoints"}}
        replica["template"]["spec"]["volumes"].append(volume)
    return yaml.safe_dump(body)


CONFIG = yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}})


def start(member, retention: str = "") -> str:
    """The uid of the claim in the member, once the job has been sent there."""
    books.apply(CONFIG, claim(**({"convoy.dev/retention": retention} if retention else {})), job())
    books.cycle()
    member.work(PYTORCH_JOBS)
    return claim_uid(member)


def claim_uid(member) -> str:
    try:
        return member.client.get(CLAIM)["metadata"]["uid"]
    except MemberMissing:
        return ""


def suspend_and_resume(member):
    actions.suspend(books.job("llama"), by="test", now=timezone.now())
    member.work(PYTORCH_JOBS)
    actions.resume(books.job("llama"), by="test", now=timezone.now())
    member.work(PYTORCH_JOBS)


def leave(member):
    reason = Reason(Code.CLUSTER_LOST, "gone")
    failover.leave(books.job("llama"), Outcome.LOST, reason, timezone.now(), purge=PurgeMode.DIRECTLY)
    member.work(PYTORCH_JOBS)


@pytest.mark.parametrize("retention", ["", "Retain", "Delete"])
@pytest.mark.parametrize("stop", [suspend_and_resume, leave])
def test_it_keeps_the_claim_while_the_job_lives(member, stop, retention):
    uid = start(member, retention)
    stop(member)
    with pytest.raises(MemberMissing):
        member.client.get(CONFIG_MAPS.path("default", "settings"))
    assert claim_uid(member) == uid
    books.cycle()
    member.work(PYTORCH_JOBS)
    assert books.job("llama").state == "Dispatched" and claim_uid(member) == uid


@pytest.mark.parametrize(("retention", "kept"), [("", True), ("Retain", True), ("delete", True), ("Delete", False)])
def test_it_deletes_the_claim_with_the_job_only_when_it_is_to(member, retention, kept):
    uid = start(member, retention)
    actions.delete(books.job("llama"), by="test", now=timezone.now())
    member.work(PYTORCH_JOBS)
    assert not Job.objects.exists() and claim_uid(member) == (uid if kept else "")


def test_it_keeps_a_claim_that_a_waiting_job_refers_to(member):
    uid = start(member, "Delete")
    other = yaml.safe_load(job())
    other["metadata"]["name"] = "other"
    books.apply(yaml.safe_dump(other))
    actions.delete(books.job("llama"), by="test", now=timezone.now())
    member.work(PYTORCH_JOBS)
    assert claim_uid(member) == uid


def test_it_keeps_a_claim_that_another_job_refers_to(member):
    uid = start(member, "Delete")
    other = yaml.safe_load(job())
    other["metadata"]["name"] = "other"
    books.apply(yaml.safe_dump(other))
    books.cycle()
    member.work(PYTORCH_JOBS)
    actions.delete(books.job("llama"), by="test", now=timezone.now())
    member.work(PYTORCH_JOBS)
    assert claim_uid(member) == uid
