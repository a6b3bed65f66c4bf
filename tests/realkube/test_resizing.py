"""Another size on a real kube-apiserver: what it takes as a patch of a copy, and what its own rules say to it."""

import pytest
import yaml
from django.utils import timezone

from fleet.kube.resources import JOBS, PYTORCH_JOBS, SCALE_OUTS, TRAINING_JOBS
from jobs.models import Work
from jobs.services.submission.changes import resizing
from tests.jobs.kinds.builders import EXAMPLES, example
from tests.jobs.services.resizing import batch, elastic, sizes_agree
from tests.realkube.control_plane import needs_realkube
from tests.support.world import POLICY

pytestmark = [*needs_realkube, pytest.mark.django_db(transaction=True)]


def resize(real, name: str, replicas: int) -> None:
    resizing.resize(real.world.job(name), {"worker": replicas}, by="alice", now=timezone.now())


def is_done(name: str) -> bool:
    work = Work.objects.get(name=name)
    return work.resize_done == work.resize_wanted > 0


@pytest.mark.parametrize("replicas", [1, 4])
def test_a_pytorchjob_gets_its_size_and_keeps_all_else(real, replicas):
    real.join("north")
    real.apply(POLICY, elastic("llama", 2, most=4))
    real.world.expect("llama", "Running")
    before = real.copy("north", "llama", PYTORCH_JOBS)
    resize(real, "llama", replicas)
    real.world.until(lambda: is_done("llama"), "the copy has the size")
    copy = real.copy("north", "llama", PYTORCH_JOBS)
    assert copy["spec"]["pytorchReplicaSpecs"]["Worker"].pop("replicas") == replicas
    before["spec"]["pytorchReplicaSpecs"]["Worker"].pop("replicas")
    assert copy["spec"] == before["spec"] and copy["metadata"]["uid"] == before["metadata"]["uid"]
    assert copy["metadata"]["annotations"]["convoy.dev/size"] == f"worker={replicas}"
    real.world.until(lambda: len(real.pods("north")) == replicas, "the pods follow")
    assert real.world.expect("llama", "Running").attempt == 1
    sizes_agree()


def test_a_batch_job_gets_its_parallelism(real):
    real.join("north")
    body = yaml.safe_load(batch("shards", 1, 4))
    body["spec"]["template"]["metadata"] = {"annotations": {"convoy.dev/duration": "100h"}}
    real.apply(POLICY, yaml.safe_dump(body))
    real.world.expect("shards", "Running")
    for replicas in (3, 2):
        resize(real, "shards", replicas)
        real.world.until(
            lambda wanted=replicas: real.copy("north", "shards", JOBS)["spec"]["parallelism"] == wanted,
            "the copy has the parallelism",
        )
        real.world.until(lambda wanted=replicas: len(real.pods("north")) == wanted, "the pods follow")
        real.world.until(lambda: is_done("shards"), "the order is recorded")
    sizes_agree()


def test_a_training_job_gets_one_scaler_which_a_real_api_server_takes(real):
    real.join("north")
    kind, body = example("trainingjob")
    body["metadata"].pop("namespace")
    for _, template in kind.templates(body):
        template["metadata"]["annotations"]["convoy.dev/duration"] = "100h"
    real.apply((EXAMPLES / "policy.yaml").read_text(), yaml.safe_dump(body))
    real.world.expect("fine-tuning", "Running")
    resize(real, "fine-tuning", 4)
    real.world.until(lambda: is_done("fine-tuning"), "the workers run")
    copy, client = real.copy("north", "fine-tuning", TRAINING_JOBS), real.world.clients["north"]
    [scaler] = client.list(SCALE_OUTS.path(copy["metadata"]["namespace"]))["items"]
    assert scaler["spec"]["toAdd"] == {"count": 2} and scaler["status"]["phase"] == "ScaleSucceeded"
    assert len(copy["status"]["targetWorkers"]) == 4 and len(real.pods("north")) == 5
    sizes_agree()
