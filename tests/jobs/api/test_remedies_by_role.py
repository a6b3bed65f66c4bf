"""Every reason a job can wait for, by every role: what helps, who may do it, that the server agrees, and that the job starts.

One table. A remedy is followed the way the console follows it: by the requests its button sends.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from django.utils import timezone

from fleet.models import Cluster, Grant, Pod
from jobs.core.explain.remedies import REMEDIES, Kind
from jobs.core.reasons import Code
from jobs.models import Job
from jobs.services.submission import actions, manifests, submit
from quotas.models import Queue, QuotaGrant
from quotas.services import queues, trees
from tests.jobs.api.explaining import explained
from tests.quotas.core.builders import JOBS, manifest, quota
from tests.support import books
from tests.support.books import GPU, a_cluster
from tests.support.people import client_of, person
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db

ROLES = ("viewer", "editor", "lead", "admin")
EDITORS = frozenset({"editor", "admin"})
LEADS = frozenset({"lead", "admin"})
ADMINS = frozenset({"admin"})
Act = Callable[[Any, dict, Job], Any]


@dataclass(frozen=True)
class Case:
    code: Code
    remedy: Kind
    wait: Callable[[], Job]
    """A job that waits for this reason."""
    act: Act | None
    """The request of the button; None: a page that leads on, or time alone."""
    allowed: frozenset[str]
    needs: str
    starts: bool = True
    """Following it makes the job start at once."""


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
        manifest(quota("root", root, root, quota("vision", {}, {GPU: 8}, leaf, other))), by="system", now=timezone.now()
    )


# how a job comes to wait


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


# how it is helped


def applying(client: Any, change: dict, job: Job) -> Any:
    body = yaml.safe_dump(change["manifest"])
    return client.post("/api/v1/apply/", body, content_type="application/yaml")


def suspending(client: Any, change: dict, job: Job) -> Any:
    ids = [held["id"] for held in change["held_by"] if held["allowed"]][: change["count"]]
    if len(ids) < change["count"]:
        return None
    answer = client.post("/api/v1/jobs/bulk/", {"action": "suspend", "ids": ids, "preview": False}, format="json")
    assert answer.json()["done"] == len(ids)
    for uid in ids:
        books.gone(Job.objects.get(uid=uid).name)
    return answer


def raising(client: Any, change: dict, job: Job) -> Any:
    limits = {name: str(amount) for name, amount in change["amounts"].items()}
    changes = [{"op": "edit", "path": change["path"], "set": {change["bound"]: limits}}]
    generation = client.get("/api/v1/quota/tree/").json()["generation"]
    return client.patch("/api/v1/quota/tree/", {"generation": generation, "changes": changes}, format="json")


def listing(client: Any, change: dict, job: Job) -> Any:
    changes = [{"op": "edit", "path": "root/vision/a", "set": {"namespaces": [job.namespace]}}]
    generation = client.get("/api/v1/quota/tree/").json()["generation"]
    return client.patch("/api/v1/quota/tree/", {"generation": generation, "changes": changes}, format="json")


def opening(client: Any, change: dict, job: Job) -> Any:
    return client.post(f"/api/v1/queues/{change['queue']}/open/", {}, format="json")


def resuming(client: Any, change: dict, job: Job) -> Any:
    return client.post(f"/api/v1/jobs/{job.uid}/resume/")


def uncordoning(client: Any, change: dict, job: Job) -> Any:
    return client.post(f"/api/v1/clusters/{change['cluster']}/uncordon/")


def lowering(client: Any, change: dict, job: Job) -> Any:
    body = pytorch_job("waits", workers=0, gpus=change["amounts"][GPU])
    return client.post("/api/v1/apply/", body, content_type="application/yaml")


CASES = [
    Case(Code.NO_POLICY, Kind.MAKE_POLICY, without_policy, applying, EDITORS, "editor"),
    Case(Code.SCHEDULING_SUSPENDED, Kind.MAKE_QUOTA_TREE, without_tree, applying, ADMINS, "quota-admin"),
    Case(Code.NO_QUOTA_FOR_NAMESPACE, Kind.ADD_NAMESPACE, outside_the_tree, listing, ADMINS, "quota-admin"),
    Case(Code.SUSPENDED, Kind.RESUME, suspended, resuming, EDITORS, "editor"),
    Case(Code.QUOTA_EXCEEDED, Kind.RAISE_QUOTA, over_quota, raising, LEADS, "quota-admin"),
    Case(Code.QUOTA_EXCEEDED, Kind.WAIT_FOR_JOBS, over_quota, suspending, EDITORS, "editor"),
    Case(Code.QUOTA_EXCEEDED, Kind.RETURN_BORROWED, beside_a_borrower, suspending, ADMINS, "editor"),
    Case(Code.MAX_JOBS_REACHED, Kind.RAISE_QUOTA, out_of_slots, raising, LEADS, "quota-admin"),
    Case(Code.MAX_JOBS_REACHED, Kind.WAIT_FOR_JOBS, out_of_slots, suspending, EDITORS, "editor"),
    Case(Code.NEVER_FITS, Kind.RAISE_QUOTA, too_large, raising, LEADS, "quota-admin"),
    Case(Code.NEVER_FITS, Kind.LOWER_REQUEST, too_large, lowering, EDITORS, "editor"),
    Case(Code.BEHIND_IN_QUEUE, Kind.LOOK_AT_JOB, behind, suspending, EDITORS, "editor"),
    Case(Code.QUEUE_HELD, Kind.OPEN_QUEUE, in_a_held_queue, opening, LEADS, "quota-admin"),
    Case(Code.NO_CLUSTER, Kind.JOIN_CLUSTER, without_clusters, None, ADMINS, "fleet-admin"),
    Case(Code.NO_CLUSTER_FITS, Kind.WAIT_FOR_JOBS, crowded_by_pods, suspending, EDITORS, "editor", starts=False),
    Case(Code.NO_CLUSTER_FITS, Kind.UNCORDON, cordoned, uncordoning, ADMINS, "fleet-admin"),
    Case(Code.NO_CLUSTER_FITS, Kind.TOLERATE, tainted, applying, EDITORS, "editor"),
    Case(Code.NO_CLUSTER_FITS, Kind.SELECT, not_selected, applying, EDITORS, "editor"),
    Case(Code.NO_CLUSTER_FITS, Kind.SELECT, selected_by_labels, applying, EDITORS, "editor"),
    Case(Code.NO_CLUSTER_FITS, Kind.SELECT, excluded, applying, EDITORS, "editor"),
    Case(Code.NO_CLUSTER_FITS, Kind.RESTORE_CLUSTER, silent, None, ADMINS, "fleet-admin"),
    Case(Code.NO_CLUSTER_FITS, Kind.ADD_NODES, too_few_nodes, None, ADMINS, "fleet-admin"),
]
ELSEWHERE = {
    Code.WAITING_FOR_SCHEDULER: "has the remedies of NoClusterFits",
    Code.RECLAIMED: "has the remedies of NoClusterFits",
    Code.CLUSTER_LOST: "has the remedies of NoClusterFits",
    Code.COPY_VANISHED: "has the remedies of NoClusterFits",
    Code.WAITING_FOR_MEMBER: "has its cluster: shows it",
    Code.WAITING_FOR_PURGE: "has its cluster: shows it",
    Code.MEMBER_REFUSED: "has its cluster: shows it",
}
OF_ONE_CLUSTER = list(Code)[list(Code).index(Code.FITS) :]


def client_for(role: str) -> Any:
    if role == "admin":
        return client_of(person("ada", superuser=True))
    granted = Grant.Role.EDITOR if role == "editor" else Grant.Role.VIEWER
    user = person(role, (granted, "default"))
    if role == "lead":
        QuotaGrant.objects.create(user=user, path="root/vision")
    return client_of(user)


def test_the_table_has_every_reason_with_a_remedy():
    helped = {code for code, kinds in REMEDIES.items() if kinds and code not in OF_ONE_CLUSTER}
    assert helped == {case.code for case in CASES} | set(ELSEWHERE)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code}-{case.remedy}-{case.wait.__name__}")
def test_it_helps_those_who_may_and_says_who_may_to_the_others(case: Case, role: str):
    job = case.wait()
    client = client_for(role)
    explanation = explained(client, job)
    code = "Suspended" if job.suspended else job.reason["code"]
    assert (code, job.cluster) == (case.code, None)
    changes = [step for change in explanation["changes"] for step in (change, *change["steps"])]
    [change] = [change for change in changes if change["kind"] == case.remedy][:1]
    assert (change["allowed"], change["needs"]) == (role in case.allowed, case.needs)
    if case.act is None or (case.remedy is Kind.ADD_NAMESPACE and role == "lead"):
        return  # a lead is not offered namespaces that nobody lists, whether or not the tree takes them
    answer = case.act(client, change, job)
    assert (answer is not None and answer.status_code < 300) == (role in case.allowed), answer and answer.content
    books.cycle()
    started = books.job("waits").state == Job.State.PLACED
    assert started == (case.starts and role in case.allowed)
