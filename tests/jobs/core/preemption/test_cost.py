"""Whose stop costs little: elastic jobs of each kind, and those that say or show that their work is saved."""

import pytest

from jobs.core.preemption.cost import Loss, eviction_loss

ELASTIC = {
    "PyTorchJob": {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 4}},
    "TrainingJob": {"etReplicaSpecs": {"launcher": {}, "worker": {"minReplicas": 2}}},
    "ElasticJob": {},
}


@pytest.mark.parametrize(("kind", "spec"), ELASTIC.items())
def test_it_knows_an_elastic_job_of_each_kind(kind, spec):
    assert eviction_loss(kind, spec, {}, None) == Loss(elastic=True)


@pytest.mark.parametrize("policy", [{"minReplicas": 3, "maxReplicas": 3}, {"maxRestarts": 3}, "much", None])
def test_a_job_that_keeps_its_size_is_not_elastic(policy):
    assert eviction_loss("PyTorchJob", {"elasticPolicy": policy}, {}, None) == Loss()


def test_a_job_has_saved_its_work_when_it_says_so():
    assert eviction_loss("Job", {}, {"convoy.dev/checkpointed": "true"}, None).checkpointed
    assert not eviction_loss("Job", {}, {"convoy.dev/checkpointed": "false"}, None).checkpointed


@pytest.mark.parametrize(("status", "saved"), [("True", True), ("False", False)])
def test_a_job_has_saved_its_work_when_its_copy_shows_so(status, saved):
    conditions = [{"type": "Running", "status": "True"}, {"type": "Checkpointed", "status": status}, "odd"]
    assert eviction_loss("Job", {}, {}, conditions).checkpointed is saved
