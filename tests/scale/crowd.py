"""A large fleet as it stands after weeks of work, written straight into the database: nothing schedules or follows it.

Drawn with a fixed seed, so that two runs measure the same rows. Runs in a process of its own: see `test_console_lists`.
"""

import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection, transaction

from fleet.models import Cluster, Event, Node
from fleet.services.authorization import access
from jobs.models import Job, Policy
from quotas.services import trees

JOBS = int(os.environ.get("CONVOY_BENCH_JOBS", "100000"))
CLUSTERS, NODES, TEAMS, POLICIES = 5, 10_000, 20, 40
GPU = "nvidia.com/gpu"
STATES = {
    "Succeeded": 58, "Failed": 8, "Queued": 20, "Running": 10, "Suspended": 2, "Moving": 1, "Dispatched": 1,
}  # fmt: skip
REASONS = ("QuotaExceeded", "NoClusterFits", "BehindInQueue", "MaxJobsReached")
BATCH = 1000


def fill() -> None:
    now, rng = datetime.now(UTC), random.Random(0)
    user = get_user_model().objects.create_superuser("admin", password="a long password")  # noqa: S106
    _, token = access.mint(user, "bench", life=None, now=now)
    (Path(settings.CONVOY_HOME) / "token").write_text(token)
    trees.apply(tree(), by="bench", now=now)
    with transaction.atomic():
        clusters = Cluster.objects.bulk_create(cluster(i, now) for i in range(CLUSTERS))
        Node.objects.bulk_create((node(i, clusters, rng) for i in range(NODES)), batch_size=BATCH)
        policies = Policy.objects.bulk_create(policy(i, now) for i in range(POLICIES))
        Job.objects.bulk_create(jobs(now, clusters, policies, rng), batch_size=BATCH)
        Event.objects.bulk_create(events(now), batch_size=BATCH)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def tree() -> dict[str, Any]:
    teams = [
        {"name": f"team-{i}", "namespaces": [f"team-{i}"], "min": {GPU: 4000}, "max": {GPU: 40_000}}
        for i in range(TEAMS)
    ]
    root = {"name": "root", "min": {GPU: 80_000}, "max": {GPU: 80_000}, "children": teams}
    head = {"apiVersion": "scheduling.sigs.k8s.io/v1beta1", "kind": "ElasticQuotaTree"}
    return {**head, "metadata": {"name": "tree", "namespace": "kube-system"}, "spec": {"root": root}}


def cluster(i: int, now: datetime) -> Cluster:
    stamps = dict.fromkeys(("state_since", "joined_at", "synced_at", "last_heartbeat"), now)
    return Cluster(name=f"cluster-{i}", server="https://127.0.0.1:9", access={}, state="Ready", **stamps)


def node(i: int, clusters: list[Cluster], rng: random.Random) -> Node:
    rack = {"topology.kubernetes.io/zone": f"rack-{i // 40}", "nvidia.com/gpu.product": "A100"}
    used = rng.randrange(9)
    return Node(
        cluster=clusters[i % CLUSTERS], name=f"node-{i:05}", ready=True, labels=rack, address=f"10.0.{i // 256}.{i % 256}",
        allocatable={"cpu": 128_000, "memory": 2**40, GPU: 8, "pods": 110},
        requested={"cpu": 16_000 * used, "memory": 2**37 * used, GPU: used, "pods": used},
    )  # fmt: skip


def policy(i: int, now: datetime) -> Policy:
    spec = {"resourceSelectors": [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}]}
    manifest = {"metadata": {"name": f"policy-{i}"}, "spec": spec}
    return Policy(
        kind="PropagationPolicy", namespace=f"team-{i % TEAMS}", name=f"policy-{i}", manifest=manifest, created_at=now
    )


def jobs(now: datetime, clusters: list[Cluster], policies: list[Policy], rng: random.Random) -> Iterator[Job]:
    states = rng.choices(list(STATES), list(STATES.values()), k=JOBS)
    for i, state in enumerate(states):
        yield job(i, state, now - timedelta(seconds=20 * (JOBS - i)), rng, clusters=clusters, policies=policies)


def job(i: int, state: str, created: datetime, rng: random.Random, *, clusters: Any, policies: Any) -> Job:
    team, workers = f"team-{rng.randrange(TEAMS)}", rng.choice((1, 3, 7, 15))
    labels = {"team": team, "user": f"user-{rng.randrange(400)}", "tier": rng.choice(("gold", "silver", "bronze"))}
    manifest, gpus, waits = (
        written(f"train-{i:06}", team, labels, workers),
        8 * (workers + 1),
        state in ("Queued", "Moving"),
    )
    running = state in ("Running", "Dispatched")
    total = {GPU: gpus, "cpu": 16_000 * (workers + 1), "pods": workers + 1}
    return Job(
        api_version="kubeflow.org/v1", kind="PyTorchJob" if i % 5 else "TFJob", namespace=team, name=f"train-{i:06}",
        labels=labels, manifest=manifest, total=total, gpus=gpus, priority=rng.randrange(10), leaf=f"root/{team}",
        roles=[{"name": "Worker", "replicas": workers + 1, "request": {GPU: 8}}], state=state,
        charge=total if running else None, policy=rng.choice(policies), reason=reason(rng) if waits else None,
        suspended=state == "Suspended", cluster=None if waits or state == "Suspended" else rng.choice(clusters),
        created_at=created, queued_at=created, started_at=None if waits else created + timedelta(minutes=i % 90),
        finished_at=created + timedelta(hours=5) if state in ("Succeeded", "Failed") else None, resource_version=i + 1,
    )  # fmt: skip


def written(name: str, namespace: str, labels: dict[str, str], workers: int) -> dict[str, Any]:
    env = [{"name": f"SETTING_{n}", "value": "x" * 40} for n in range(12)]
    container = {"name": "pytorch", "image": "example.com/train:1", "env": env, "resources": {"limits": {GPU: 8}}}
    role = {"replicas": workers, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"pytorchReplicaSpecs": {"Master": {**role, "replicas": 1}, "Worker": role}},
    }


def reason(rng: random.Random) -> dict[str, Any]:
    seen = [
        {
            "cluster": f"cluster-{i}",
            "fits": False,
            "code": "NotEnoughFree",
            "message": "short of 40 GPU",
            "short": {GPU: 40},
        }
        for i in range(CLUSTERS)
    ]
    return {"code": rng.choice(REASONS), "message": "it waits for room", "clusters": seen}


def events(now: datetime) -> Iterator[Event]:
    for i in range(2 * JOBS):
        at = now - timedelta(seconds=10 * (2 * JOBS - i))
        yield Event(
            regarding_kind="PyTorchJob", regarding_namespace=f"team-{i % TEAMS}", regarding_name=f"train-{i // 2:06}",
            regarding_uid=f"uid-{i // 2}", reason="Moving" if i % 500 == 0 else "Placed", message="on cluster-1",
            source="convoy", first_at=at, last_at=at,
        )  # fmt: skip
