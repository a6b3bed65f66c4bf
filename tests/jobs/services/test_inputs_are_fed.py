"""Every field of what the engine decides by is fed from rows: a field that always has its default decides nothing.

Two clusters and three jobs as different from each other and from the defaults as rows can be, read by the product's loader.
"""

from collections.abc import Iterable
from dataclasses import MISSING, fields
from datetime import timedelta
from typing import Any

import pytest
import yaml
from django.utils import timezone

from fleet.core.node_exclusions import ExclusionReason
from fleet.models import Cluster
from fleet.services.clusters import node_exclusions
from jobs import snapshot
from jobs.core.gang.requirements import GangRequirements, PodRequirements, RoleRequirements
from jobs.core.gang.types import Gang
from jobs.core.placement.types import Member, NodeFacts
from jobs.models import Attempt, ClaimLocation, Job
from jobs.services.submission import manifests, submit
from tests.support.books import a_cluster
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db
TAINT = {"key": "spot", "value": "", "effect": "NoSchedule"}
DIVIDED = """
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata: {name: divided}
spec:
  priority: 9
  placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}
  resourceSelectors: [{apiVersion: batch/v1, kind: Job}]
"""
BATCH = """
apiVersion: batch/v1
kind: Job
metadata: {name: many}
spec:
  parallelism: 4
  completions: 4
  template: {spec: {restartPolicy: Never, containers: [{name: a, image: b, resources: {limits: {nvidia.com/gpu: 1}}}]}}
"""


def picky() -> str:
    body = yaml.safe_load(pytorch_job("picky", workers=2, duration="90s"))
    body["metadata"] |= {
        "labels": {
            "quota.scheduling.alibabacloud.com/name": "elsewhere",
            "quota.scheduling.alibabacloud.com/preemptible": "false",
        },
        "annotations": {
            "convoy.dev/data": "dataset=imagenet",
            "convoy.dev/topology": "required",
            "convoy.dev/priority": "7",
            "convoy.dev/deadline": "9h",
        },
    }
    for replica in body["spec"]["pytorchReplicaSpecs"].values():
        template = replica["template"]
        template["metadata"]["labels"] = {"app": "picky"}
        template["spec"] |= {
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "ckpt"}}],
            "schedulerName": "volcano",
            "nodeSelector": {"pool": "a"},
            "tolerations": [{"key": "spot", "operator": "Exists"}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
                    }
                },
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "picky"}}}
                    ]
                },
            },
        }
    return yaml.safe_dump(body)


@pytest.fixture
def rows() -> None:
    now = timezone.now()
    odd, reserving = a_cluster("odd"), a_cluster("reserving", gpus=4)
    Cluster.objects.filter(pk=odd.pk).update(
        state=Cluster.State.NOT_READY, cordoned=True, synced_at=None, stale_since=timezone.now(), region="eu", taints=[TAINT],
        labels={"convoy.dev/fit": "Aggregate", "convoy.dev/gpu-hour-cost": "2"},
    )  # fmt: skip
    Cluster.objects.filter(pk=reserving.pk).update(labels={"convoy.dev/fit": "Reservation"})
    switches = {"network.topology.nvidia.com/spine": "s", "network.topology.nvidia.com/leaf": "l"}
    odd.nodes.update(labels=switches, taints=[TAINT], unschedulable=True, requested={"cpu": 1})
    text = "\n---\n".join((POLICY, DIVIDED, picky(), BATCH, pytorch_job("plain", workers=0, gpus=2)))
    submit.apply(manifests.parse(text.encode()), by="test", now=now)
    terms = [[["zone", "In", ["a"]]]]
    ClaimLocation.objects.create(namespace="default", name="ckpt", cluster=odd, created_at=now, node_terms=terms)
    job = Job.objects.get(name="picky")
    node = odd.nodes.values_list("name", flat=True)[0]
    node_exclusions.exclude(odd, node, "it hums", now + timedelta(hours=1), by="ada", now=now)
    node_exclusions.report(
        odd, node, node_exclusions.Fault("f", now, ExclusionReason.INFRASTRUCTURE, "failed it"), now, job.uid
    )
    Attempt.objects.create(
        job=job, number=1, cluster_name="odd", placed_at=now - timedelta(hours=1), ended_at=now, outcome="Failed"
    )
    Job.objects.filter(pk=job.pk).update(
        attempt=1,
        generation=2,
        charge={"nvidia.com/gpu:h100": 3},
        state=Job.State.MOVING,
        leaf="root/a",
        leaf_fault="not its own",
        queued_at=now - timedelta(hours=2),
        claimed_at=now,
        reclaim={"job": 7},
        awaits={"code": "WaitingForJob", "message": "waits for another job"},
    )


def unfed(kind: type, values: Iterable[Any]) -> set[str]:
    """Fields in which none of the values differs from the default, or where there is none, from another value."""
    values = list(values)
    assert values
    stuck = set()
    for field in fields(kind):
        seen = [getattr(value, field.name) for value in values]
        if field.default is not MISSING:
            seen.append(field.default)
        elif field.default_factory is not MISSING:
            seen.append(field.default_factory())
        if all(each == seen[0] for each in seen):
            stuck.add(field.name)
    return stuck


def test_every_field_of_a_cluster_is_fed(rows):
    sites = snapshot.load_sites()
    assert unfed(Member, [site.member for site in sites]) == set()
    assert unfed(NodeFacts, [node for site in sites for node in site.nodes]) - {"name"} == set()


def test_every_field_of_a_gang_and_what_its_pods_ask_is_fed(rows):
    gangs = snapshot.load(timezone.now()).waiting
    demands = [gang.demand for gang in gangs]
    parts = [part for demand in demands for part in demand.parts]
    # The choice of a flavor sets it (`jobs.core.gang.flavors`), no row does.
    assert unfed(Gang, gangs) == {"needs_anyhow"}
    assert unfed(GangRequirements, demands) == set()
    assert unfed(RoleRequirements, parts) == set()
    assert unfed(PodRequirements, [part.ask for part in parts]) == set()


def test_failures_of_the_snapshot_are_fed(rows):
    assert snapshot.load(timezone.now()).failures == {"odd": 1.0}
