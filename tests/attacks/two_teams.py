"""Two teams on one fleet whose jobs stand in each other's way in every way there is, and what each API is asked for then."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import yaml
from django.utils import timezone

from fleet.kube.resources import PYTORCH_JOBS
from fleet.member.client import Access
from fleet.models import Cluster, Grant, Pod
from fleet.services.members import member_clients
from jobs.models import Dependent, Job, Policy
from jobs.services.lifecycle import cycle_requests, provenance
from jobs.services.lifecycle.provenance import Provenance
from jobs.services.submission import manifests, submit
from quotas.models import QuotaGrant
from tests.attacks import kube_door
from tests.fleet.api.rest_contract import OPERATIONS
from tests.support import books, quotas
from tests.support.people import person
from tests.support.world import POLICY, pytorch_job

SECRET = "secret-project"
OURS, THEIRS = ("team-a", "team-a2"), ("team-b", "team-b2")
ROLES: dict[str, tuple[tuple[str, str], ...]] = {
    "nobody": (),
    "viewer": tuple((Grant.Role.VIEWER, namespace) for namespace in OURS),
    "editor": tuple((Grant.Role.EDITOR, namespace) for namespace in OURS),
    "lead": tuple((Grant.Role.EDITOR, namespace) for namespace in OURS),
}


def member_of(role: str, name: str = "mal") -> Any:
    user = person(name, *ROLES[role])
    if role == "lead":
        QuotaGrant.objects.create(user=user, path="root")
    return user


def submitted(namespace: str, name: str, **fields: Any) -> Job:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"a": name}}
    documents = [yaml.safe_load(POLICY), yaml.safe_load(pytorch_job(name, workers=0, **fields)), secret]
    for document in documents:
        document["metadata"]["namespace"] = namespace
    documents[0]["metadata"]["name"] = f"policy-of-{name}"
    documents[0]["spec"]["resourceSelectors"] = [
        {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": name, "namespace": namespace}
    ]
    text = yaml.safe_dump_all(documents)
    submit.apply(manifests.parse(text.encode()), by="test", now=timezone.now())
    return Job.objects.get(name=name)


def two_teams(*, evicts: str) -> tuple[Job, Job]:
    """A job of each team that has to do with jobs of the other; ``evicts`` names the namespace whose job takes its due back.

    A queue of both in which the first blocks the others, quota that one lends and the other takes back, nodes that are
    kept, and an object in a member that claims to be a copy.
    """
    lender, borrower = (OURS[1], THEIRS[1]) if evicts == "ours" else (THEIRS[1], OURS[1])
    cluster = books.a_cluster("north", gpus=9)
    cluster.access = member_clients.stored(Access("https://127.0.0.1:1"))
    cluster.save()
    block = {"queue-policy": "Block"}
    leaves = [
        quotas.leaf("shared", **quotas.gpus(4, 4), namespaces=[OURS[0], THEIRS[0]], attributes=block),
        quotas.leaf("lender", lender, **quotas.gpus(2, 4)),
        quotas.leaf("borrower", borrower, **quotas.gpus(0, 4)),
    ]
    total = {**quotas.PLENTY, quotas.GPU: 6}
    quotas.apply_tree(*leaves, total=total)
    names = {"ours": {lender: "mine", borrower: SECRET}, "theirs": {lender: SECRET, borrower: "mine"}}[evicts]
    submitted(THEIRS[0], f"{SECRET}-runs", gpus=4)
    submitted(borrower, f"{names[borrower]}-borrows", gpus=2)
    assert books.cycle() == 2
    books.sent()
    Job.objects.update(state=Job.State.RUNNING, started_at=timezone.now() - timedelta(hours=1))
    runs = Job.objects.get(name=f"{SECRET}-runs")
    add_pods(cluster, runs)
    submitted(THEIRS[0], f"{SECRET}-waits", gpus=3)
    waits = submitted(OURS[0], "mine-waits", gpus=1)
    submitted(lender, f"{names[lender]}-takes", gpus=2)
    for _ in range(4):
        cycle_requests.request()
        books.cycle()
    assert Job.objects.filter(state=Job.State.RECLAIMING).count() == 1
    claims_to_be_a_copy(cluster)
    return waits, runs


def add_pods(cluster: Cluster, job: Job) -> None:
    fields = {"cluster": cluster, "namespace": job.namespace, "attempt": 1, "phase": "Running", "node": "node"}
    Pod.objects.create(
        name=f"{job.name}-master-0", uid="1", job_uid=job.uid, role="master", created_at=timezone.now(), **fields
    )


def claims_to_be_a_copy(cluster: Cluster) -> None:
    provenance._reported.clear()
    copy = {"metadata": {"namespace": THEIRS[0], "name": f"{SECRET}-copy", "uid": "x"}}
    Provenance(cluster, {}).report(PYTORCH_JOBS, copy, "says it is a copy", timezone.now())


def known(job: Job) -> dict[str, str]:
    """What the paths of REST name, of one team."""
    return {"id": str(job.uid), "name": "north", "node": "node", "username": "mal"}


def rest_paths(*jobs: Job) -> Iterator[tuple[str, str]]:
    """(method, path) of every operation, with what is of each of the jobs where its path names something."""
    for operation in OPERATIONS:
        for job in jobs:
            for names in _names(operation.path, job):
                path = operation.path
                for name, value in names.items():
                    path = path.replace("{" + name + "}", value)
                yield operation.method.upper(), path


def _names(path: str, job: Job) -> Iterator[dict[str, str]]:
    names = known(job)
    if "/policies/" in path:
        names["id"] = str(Policy.objects.get(name=f"policy-of-{job.name}").uid)
    if "/dependents/" in path:
        names["id"] = str(Dependent.objects.get(name=job.name).uid)
    if "/history/" in path or "/tokens/" in path or "/leads/" in path or "/grants/" in path or "/audit/" in path:
        names["id"] = "1"
    if "/queues/" in path:
        names["name"] = str(_queue())
    if "/namespaces/" in path:
        names["name"] = job.namespace
    yield names


def _queue() -> str:
    from quotas.models import Queue

    return Queue.objects.get(path="root/shared").name


MINE = yaml.safe_dump({**kube_door.JOB, "metadata": {"name": "mine-new", "namespace": OURS[0]}})
_LESS = [{"op": "edit", "path": f"root/{leaf}", "set": {"max": {quotas.GPU: 1}, "min": {quotas.GPU: 0}}}
         for leaf in ("borrower", "lender", "shared")]  # fmt: skip
_GONE = [{"op": "remove", "path": f"root/{leaf}"} for leaf in ("borrower", "lender", "shared")]
_TAKES = [{"op": "edit", "path": f"root/{leaf}", "set": {"max": {quotas.GPU: 1}, "attributes": {"excess": "TakeBack"}}}
          for leaf in ("borrower", "lender", "shared")]  # fmt: skip
_MORE = [{"op": "edit", "path": "root/lender", "set": {"min": {quotas.GPU: 0}}},
         {"op": "edit", "path": "root/borrower", "set": {"min": {quotas.GPU: 2}}}]  # fmt: skip
TREES: list[Any] = [{"changes": changes} for changes in (_LESS, _GONE, _TAKES, _MORE, *([each] for each in _GONE))]


def bodies(path: str) -> list[Any]:
    """What a writing operation is sent, by its path; raises KeyError for one that nobody has classified."""
    everyone = [str(uid) for uid in Job.objects.values_list("uid", flat=True)]
    return {
        "/api/v1/apply/": [MINE],
        "/api/v1/apply/preview/": [MINE],
        "/api/v1/delete/": [MINE],
        "/api/v1/quota/dry-run/": [MINE],
        "/api/v1/whatif/": [
            {"add_job": MINE},
            {"lose_cluster": "north"},
            {"drain_cluster": "north"},
            {"add_nodes": {"cluster": "north", "count": 3}},
            {"raise_quota": {"path": "root/shared", "max": {quotas.GPU: 9}}},
        ],
        "/api/v1/jobs/bulk/": [
            {"action": action, "ids": everyone, "preview": True} for action in ("suspend", "resume", "delete")
        ],
        "/api/v1/quota/tree/preview/": TREES,
        "/api/v1/quota/tree/": TREES,
        "/api/v1/quota/tree/revert/": [{"to": 1}],
    }.get(path) or [OF_ONE_OBJECT[_shape(path)]]


def _shape(path: str) -> str:
    """The path without the parts that name an object."""
    parts = path.removeprefix("/api/v1/").strip("/").split("/")
    return "/".join(parts[:1] + parts[2:]) if len(parts) > 1 and parts[0] in _OBJECTS else "/".join(parts)


_OBJECTS = {
    "clusters", "dependents", "grants", "jobs", "leads", "namespaces", "policies", "queues", "queueunits", "tokens", "users",
}  # fmt: skip
OF_ONE_OBJECT: dict[str, Any] = {
    "queueunits/move": {"queue": "root/lender"},
    **dict.fromkeys(
        (
            "clusters", "clusters/check", "clusters/cordon", "clusters/credentials", "clusters/drain", "clusters/impersonation",
            "clusters/revive", "clusters/short-lived-tokens",
            "clusters/silence", "clusters/uncordon", "dependents", "grants", "jobs", "jobs/resize", "jobs/resume",
            "jobs/suspend",
            "keys/rotation", "leads", "login/code", "login/token",
            "namespaces", "policies", "queues/drain", "queues/hold", "queues/open", "queues/stop", "second-factor",
            "second-factor/code", "users/reset-second-factor",
            "session", "tokens", "users", "users/disable", "users/enable", "users/password", "users/tokens",
            "users/tokens/1",
        ),
        {},
    ),
}  # fmt: skip
"""Operations that answer about the object that their path names, or about what the caller has sent; with what they are sent."""
