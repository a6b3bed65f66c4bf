"""What the quotas learn of demand: the charges of now, what waits, and the leaf each job would have in another tree."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.core.preemption.cost import Loss
from jobs.models import Job
from jobs.services.scheduling.demand import demand_provider
from jobs.services.submission import manifests, submit
from quotas import queries
from quotas.services import trees, usage
from tests.quotas.core.builders import manifest, quota, tree
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def crowd(db):
    """A tree of one team, where one job of its namespace is charged and another waits."""
    now = timezone.now()
    team = quota("team", {"cpu": 4}, {"cpu": 9}, namespaces=["default"])
    trees.apply(manifest(quota("root", 99, 99, team)), by="test", now=now)
    text = pytorch_job("runs") + "---\n" + pytorch_job("waits")
    submit.apply(manifests.parse(text.encode()), by="test", now=now)
    Job.objects.filter(name="runs").update(charge={"cpu": 3000, "kube-queue/max-jobs": 1}, state="Running")


def test_it_says_what_is_in_use_and_what_is_asked_for(crowd):
    shown = usage.report(queries.tree())["root/team"]
    assert shown["cpu"].used == 3000 and shown["kube-queue/max-jobs"].used == 1
    assert shown["kube-queue/max-jobs"].requested == 2


def test_it_gives_each_job_the_leaf_it_would_have(crowd):
    other = tree(99, quota("team", 1, 9), quota("new", 1, 9, namespaces=["default"]))
    running, waiting = demand_provider.load_demand(other, timezone.now())
    assert [(each.key, each.leaf) for each in running] == [("PyTorchJob default/runs", "root/new")]
    assert [(each.name, each.leaf) for each in waiting] == [("default/waits", "root/new")]


def test_it_tells_whose_stop_costs_little(crowd):
    job = Job.objects.get(name="runs")
    spec = {**job.manifest["spec"], "elasticPolicy": {"minReplicas": 1}}
    Job.objects.filter(pk=job.pk).update(
        manifest={**job.manifest, "spec": spec}, status={"conditions": [{"type": "Checkpointed", "status": "True"}]}
    )
    [ran], _ = demand_provider.load_demand(queries.tree(), timezone.now())
    assert ran.elastic and ran.checkpointed
    assert demand_provider.losses_of(Job.objects.filter(name="waits")) == {Job.objects.get(name="waits").pk: Loss()}


def test_it_knows_how_much_work_is_lost_since_a_job_started_or_last_saved(crowd):
    now = timezone.now()
    job = Job.objects.get(name="runs")
    Job.objects.filter(pk=job.pk).update(started_at=now - timedelta(hours=2))
    [ran], _ = demand_provider.load_demand(queries.tree(), now)
    assert ran.lost_s == 7200
    body = dict(job.manifest)
    saved = {"convoy.dev/checkpointed": (now - timedelta(minutes=5)).isoformat()}
    body["metadata"] = {**body["metadata"], "annotations": saved}
    Job.objects.filter(pk=job.pk).update(manifest=body)
    [ran], _ = demand_provider.load_demand(queries.tree(), now)
    assert ran.lost_s == 300


def test_it_leaves_out_who_would_have_no_leaf(crowd):
    assert demand_provider.load_demand(tree(99, quota("team", 1, 9)), timezone.now()) == ([], [])
