"""Jobs that wait, one for each way in which a job comes to wait: the rows that lead there, and a cycle or two."""

import json
from datetime import timedelta
from typing import Any

import yaml
from django.utils import timezone

from fleet.models import Cluster, Pod
from jobs.models import Attempt, Job
from jobs.services.scheduling.demand import budgets
from jobs.services.submission import manifests, submit
from jobs.services.submission.changes import actions
from quotas.models import Queue
from quotas.services import queues, trees
from tests.quotas.core.builders import JOBS, manifest, quota
from tests.support import books
from tests.support.books import GPU, a_cluster
from tests.support.world import POLICY, pytorch_job


def submitted(policy: dict | None = None, cycles: int = 1, **fields: Any) -> Job:
    document = yaml.safe_load(POLICY) if policy is None else policy
    documents = [document] if document else []
    documents.append(yaml.safe_load(pytorch_job("waits", **{"workers": 0, **fields})))
    submit.apply(manifests.parse(yaml.safe_dump_all(documents).encode()), by="test", now=timezone.now())
    for _ in range(cycles):
        books.cycle()
    return books.job("waits")


def placement(**fields: Any) -> dict:
    policy = yaml.safe_load(POLICY)
    policy["spec"]["placement"].update(fields)
    return policy


def runs(name: str, **fields: Any) -> None:
    books.apply(pytorch_job(name, **{"workers": 0, **fields}))
    books.cycle()


def a_tree(limits: dict | None = None, low: dict | None = None, **fields: Any) -> None:
    """root > vision > a, whose namespace is default; the lead leads vision."""
    root = {GPU: 8, "cpu": 10**6, "memory": 2**50}
    leaf = quota("a", low or {}, limits or {GPU: 8}, namespaces=["default"], **fields)
    other = quota("b", {}, {GPU: 8}, namespaces=["speech"])
    trees.apply(
        manifest(quota("root", root, root, quota("vision", low or {}, {GPU: 8}, leaf, other))),
        by="system",
        now=timezone.now(),
    )


def without_policy() -> Job:
    a_cluster()
    return submitted(policy={})


def without_tree() -> Job:
    a_cluster()
    policy = yaml.safe_load(POLICY)
    policy["spec"]["suspension"] = {"scheduling": True}
    return submitted(policy)


def outside_the_tree() -> Job:
    a_tree()
    tree = manifest(quota("root", {GPU: 8}, {GPU: 8}, quota("vision", {}, {GPU: 8}, quota("a", {}, {GPU: 8}))))
    trees.apply(tree, by="system", now=timezone.now())
    return without_tree()


def suspended() -> Job:
    a_cluster()
    job = submitted(cycles=0)
    actions.suspend(job, by="test", now=timezone.now())
    return books.job("waits")


def over_quota() -> Job:
    a_cluster()
    a_tree({GPU: 4})
    runs("holder", gpus=4)
    return submitted(gpus=2)


def beside_a_borrower() -> Job:
    a_cluster()
    a_tree()
    other = yaml.safe_load(pytorch_job("borrower", workers=0, gpus=7))
    policy = yaml.safe_load(POLICY)
    for document in (other, policy):
        document["metadata"]["namespace"] = "speech"
    submit.apply(manifests.parse(yaml.safe_dump_all([policy, other]).encode()), by="test", now=timezone.now())
    books.cycle()
    return submitted(gpus=4)


def out_of_slots() -> Job:
    a_cluster()
    a_tree({GPU: 8, JOBS: 1})
    runs("holder")
    return submitted()


def too_large() -> Job:
    a_cluster()
    a_tree({GPU: 2})
    return submitted(gpus=4)


def behind() -> Job:
    a_cluster(gpus=4)
    a_tree({GPU: 8}, attributes={"queue-policy": "Block"})
    for name, gpus in (("runs", 2), ("blocks", 4)):
        runs(name, gpus=gpus)
    return submitted(gpus=1)


def in_a_held_queue() -> Job:
    a_cluster()
    a_tree()
    queues.set_state(Queue.objects.get(path="root/vision/a"), Queue.State.HELD, by="ada", now=timezone.now())
    return submitted()


def over_budget() -> Job:
    """The month's budget of its queue was used up by a job that has ended."""
    a_cluster()
    a_tree()
    runs("spender", gpus=8)
    now = timezone.now()
    Attempt.objects.update(placed_at=now - timedelta(seconds=90))
    books.sent()
    books.end("spender")
    budget = '{"nvidia.com/gpu-hours": 0.001}'
    change = {"op": "edit", "path": "root/vision/a", "set": {"attributes": {"budget": budget}}}
    trees.edit([change], trees.Saving("system", now))
    budgets._last.clear()
    budgets.review(now)
    return submitted()


def before_a_window() -> Job:
    """A window of its neighbour is promised the whole fleet in an hour."""
    a_cluster()
    a_tree()
    begin = timezone.now() + timedelta(minutes=30)
    window = {"from": begin.isoformat(), "to": (begin + timedelta(hours=1)).isoformat(), "min": {GPU: 8}}
    team = {"from": window["from"], "to": window["to"], "min": {GPU: 8}}
    changes = [
        {"op": "edit", "path": path, "set": {"attributes": {"windows": json.dumps([stated])}}}
        for path, stated in (("root/vision/b", window), ("root/vision", team))
    ]
    trees.edit(changes, trees.Saving("system", timezone.now()))
    return submitted()


def after_another() -> Job:
    a_cluster()
    books.apply(books.annotated("convoy.dev/after", "prepare", pytorch_job("waits", workers=0)))
    books.cycle()
    return books.job("waits")


def after_a_failure() -> Job:
    a_cluster()
    runs("prepare")
    books.sent()
    books.report("prepare", "Failed")
    books.apply(books.annotated("convoy.dev/after", "prepare", pytorch_job("waits", workers=0)))
    books.cycle()
    return books.job("waits")


def without_clusters() -> Job:
    return submitted()


def crowded_by_pods() -> Job:
    north = a_cluster(gpus=4)
    north.nodes.update(requested={GPU: 4, "pods": 1})
    books.apply(pytorch_job("holder", workers=0, gpus=4))
    Job.objects.filter(name="holder").update(state=Job.State.RUNNING, cluster=north, attempt=1)
    uid, node = books.job("holder").uid, north.nodes.get().name
    facts = {"cluster": north, "namespace": "default", "uid": "1", "attempt": 1, "created_at": timezone.now()}
    Pod.objects.create(name="p", job_uid=uid, role="master", node=node, phase="Running", **facts)
    return submitted(gpus=2)


def cordoned() -> Job:
    a_cluster()
    Cluster.objects.update(cordoned=True)
    return submitted()


def tainted() -> Job:
    a_cluster()
    Cluster.objects.update(taints=[{"key": "team", "value": "x", "effect": "NoSchedule"}])
    return submitted()


def not_selected() -> Job:
    a_cluster()
    return submitted(placement(clusterAffinity={"clusterNames": ["south"]}))


def selected_by_labels() -> Job:
    a_cluster()
    return submitted(placement(clusterAffinity={"labelSelector": {"matchLabels": {"gpu": "h100"}}}))


def excluded() -> Job:
    a_cluster()
    return submitted(placement(clusterAffinity={"exclude": ["north"]}))


def silent() -> Job:
    a_cluster()
    Cluster.objects.update(state=Cluster.State.UNKNOWN)
    return submitted()


def too_few_nodes() -> Job:
    a_cluster(gpus=4)
    return submitted(workers=1, gpus=4)
