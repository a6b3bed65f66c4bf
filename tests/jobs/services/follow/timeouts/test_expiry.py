"""How long a finished job is kept is the fleet's business, and the news of its end is never deleted with its copy."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.kube.resources import PYTORCH_JOBS
from fleet.models import Pod
from jobs.kinds import registry
from jobs.models import Job, Work
from jobs.services.dispatch.members import member_objects
from jobs.services.follow import sweep
from jobs.services.follow.status import JobEventHandler
from jobs.services.submission import manifests, submit
from tests.support import books
from tests.support.passive import passive_member
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
PATH = PYTORCH_JOBS.path("default", "llama")


def with_ttl(ttl_s: int) -> str:
    body = yaml.safe_load(pytorch_job("llama"))
    body["spec"]["runPolicy"] = {"ttlSecondsAfterFinished": ttl_s, "backoffLimit": 3}
    return yaml.safe_dump(body)


@pytest.fixture
def member(tmp_path):
    with passive_member(tmp_path) as made:
        yield made


@pytest.fixture
def running(member):
    books.apply(with_ttl(5))
    books.cycle()
    member.work(PYTORCH_JOBS)
    tell(member, "Running")
    return member


def tell(member, condition: str) -> None:
    status = {"conditions": [{"type": condition, "status": "True"}]}
    member.client.merge_patch(f"{PATH}/status", {"status": status})
    member.report(PYTORCH_JOBS)


def test_it_sends_copies_without_the_time_to_live_and_leaves_the_rest_as_it_was(running):
    assert running.client.get(PATH)["spec"]["runPolicy"] == {"suspend": False, "backoffLimit": 3}
    assert books.job("llama").manifest["spec"]["runPolicy"]["ttlSecondsAfterFinished"] == 5


def test_it_deletes_a_finished_job_when_its_time_is_over_and_not_before(running):
    tell(running, "Succeeded")
    ended = books.job("llama").finished_at
    sweep.run(ended + timedelta(seconds=4))
    assert books.job("llama").deleting_at is None
    sweep.run(ended + timedelta(seconds=5))
    running.work(PYTORCH_JOBS)
    assert not Job.objects.exists() and running.items(PYTORCH_JOBS) == []


def test_it_keeps_a_finished_job_that_says_nothing(member):
    books.apply(pytorch_job("llama"))
    Job.objects.update(state="Succeeded", finished_at=timezone.now() - timedelta(days=89))
    sweep.run(timezone.now())
    assert books.job("llama").deleting_at is None


def test_it_deletes_no_job_that_runs(running):
    sweep.run(timezone.now() + timedelta(days=1))
    assert Job.objects.filter(deleting_at__isnull=True).count() == 1


def test_the_time_to_live_of_a_placed_job_may_change(running):
    body = books.POLICY, with_ttl(900)
    submit.apply(manifests.parse("\n---\n".join(body).encode()), by="test", now=timezone.now())
    assert books.job("llama").ttl_s == 900


def test_a_copy_that_had_succeeded_when_it_was_deleted_is_not_run_again(running):
    found = running.client.get(PATH)
    found["status"] = {"conditions": [{"type": "Succeeded", "status": "True"}]}
    running.client.delete(PATH)
    JobEventHandler().on_delete(running.cluster.pk, PYTORCH_JOBS, [found], timezone.now())
    assert (books.job("llama").state, books.job("llama").attempt) == ("Succeeded", 1)


def test_a_copy_that_had_failed_when_it_was_deleted_has_failed(running):
    found = running.client.get(PATH)
    found["status"] = {"conditions": [{"type": "Failed", "status": "True", "message": "exit 1"}]}
    JobEventHandler().on_delete(running.cluster.pk, PYTORCH_JOBS, [found], timezone.now())
    assert (books.job("llama").state, books.job("llama").attempt) == ("Failed", 1)


def pods(running, *phases: str) -> None:
    uid, now = books.job("llama").uid, timezone.now()
    for i, phase in enumerate(phases):
        Pod.objects.create(
            cluster=running.cluster, namespace="default", name=f"p{i}", uid=f"u{i}", job_uid=uid, attempt=1, phase=phase,
            created_at=now,
        )  # fmt: skip


def missed(running) -> str:
    """The member's next list is without the copy."""
    later = timezone.now() + timedelta(minutes=1)
    missing = JobEventHandler().expected(running.cluster.pk, PYTORCH_JOBS)
    JobEventHandler().on_resync(running.cluster.pk, PYTORCH_JOBS, missing, later)
    return books.job("llama").state


def test_a_copy_that_vanished_after_all_its_pods_had_succeeded_has_succeeded(running):
    pods(running, "Succeeded", "Succeeded", "Succeeded")
    assert missed(running) == "Succeeded"


@pytest.mark.parametrize("phases", [["Succeeded"], ["Succeeded", "Succeeded", "Running"], []])
def test_a_copy_that_vanished_before_that_moves(running, phases):
    pods(running, *phases)
    assert missed(running) == "Moving"


def test_the_work_of_a_finished_job_whose_copy_was_deleted_ends(running):
    tell(running, "Succeeded")
    running.client.delete(PATH)
    missed(running)
    running.work(PYTORCH_JOBS)
    assert Work.objects.get().state == "Gone"


TTLS = [
    ("kubeflow.org/v1", "PyTorchJob", {"runPolicy": {"ttlSecondsAfterFinished": 7}}, 7),
    ("kubeflow.org/v2beta1", "MPIJob", {"runPolicy": {"ttlSecondsAfterFinished": 0}}, 0),
    ("batch/v1", "Job", {"ttlSecondsAfterFinished": 7}, 7),
    ("batch.volcano.sh/v1alpha1", "Job", {"ttlSecondsAfterFinished": 7}, 7),
    ("kai.alibabacloud.com/v1alpha1", "TrainingJob", {"ttlSecondsAfterFinished": 7}, 7),
    ("sparkoperator.k8s.io/v1beta2", "SparkApplication", {"timeToLiveSeconds": 2**40}, 2**31 - 1),
    ("ray.io/v1", "RayJob", {"ttlSecondsAfterFinished": 7, "shutdownAfterJobFinishes": True}, None),
    ("batch/v1", "Job", {}, None),
    ("batch/v1", "Job", {"ttlSecondsAfterFinished": True}, None),
]


@pytest.mark.parametrize(("version", "name", "spec", "ttl_s"), TTLS)
def test_every_kind_says_how_long_it_is_kept(version, name, spec, ttl_s):
    kind, manifest = registry.kind_of(version, name), {"spec": spec}
    assert kind.ttl_s(manifest) == ttl_s
    kind.drop_ttl(manifest)
    assert "ttlSecondsAfterFinished" not in str(manifest) and "timeToLiveSeconds" not in str(manifest)


def test_the_jobs_of_a_job_set_are_kept_until_the_set_has_ended():
    job = {"ttlSecondsAfterFinished": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
    spec = {"ttlSecondsAfterFinished": 9, "replicatedJobs": [{"name": "a", "template": {"spec": job}}]}
    manifest = {"metadata": {"name": "a", "namespace": "b"}, "spec": spec}
    kind = registry.kind_of("jobset.x-k8s.io/v1alpha2", "JobSet")
    assert "ttlSeconds" not in str(member_objects.manifest(kind, manifest, {})) and kind.ttl_s(manifest) == 9
