"""Whose stop costs little: elastic jobs of each kind, and those that say or show that their work is saved."""

from datetime import UTC, datetime, timedelta

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


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("annotation", "hours"),
    [
        ("2026-01-01T11:30:00Z", 0.5),
        ("2026-01-01T09:00:00Z", 2),
        ("2026-01-01T13:00:00Z", 0),
        ("true", 0),
        ("false", 2),
    ],
)
def test_it_loses_the_work_since_the_last_checkpoint_or_since_the_start(annotation, hours):
    loss = eviction_loss("Job", {}, {"convoy.dev/checkpointed": annotation}, None)
    assert loss.seconds(NOON - timedelta(hours=2), NOON) == 3600 * hours


@pytest.mark.parametrize("annotation", ["2026-01-01T11:30:00", "noon", "", "1e9", 7, None, ["true"]])
def test_it_takes_no_word_for_a_checkpoint_that_is_no_time(annotation):
    assert eviction_loss("Job", {}, {"convoy.dev/checkpointed": annotation}, None) == Loss()


def test_an_elastic_job_loses_nothing():
    assert eviction_loss("ElasticJob", {}, {}, None).seconds(NOON - timedelta(hours=2), NOON) == 0


def test_a_job_that_has_not_started_loses_nothing():
    assert Loss().seconds(datetime.max.replace(tzinfo=UTC), NOON) == 0
