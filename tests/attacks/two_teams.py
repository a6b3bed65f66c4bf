"""Two teams on one fleet whose jobs stand in each other's way in every way there is, and what each API is asked for then."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import yaml
from django.utils import timezone

from fleet.core import gpu_readings
from fleet.core.gpu_readings import Reading
from fleet.kube.resources import PYTORCH_JOBS
from fleet.member.client import Access
from fleet.models import AuditEntry, Cluster, Grant, NodeReading, Pod
from fleet.services.auditing import audit
from fleet.services.authorization import namespace_policies
from fleet.services.members import member_clients
from jobs.core.policies.state_preservation import StateRule
from jobs.events import record_event
from jobs.models import Attempt, Dependent, Incident, Job, Notice, Policy, PreservedState, Work
from jobs.queries import BY
from jobs.services.lifecycle import cycle_requests
from jobs.services.lifecycle.copies import other_copies, provenance
from jobs.services.lifecycle.copies.provenance import Provenance
from jobs.services.series import recording
from jobs.services.series.accounting import Owner as Accounted
from jobs.services.series.goodput import Owner as Worked
from jobs.services.series.hours import Owner
from jobs.services.series.waits import Owner as Waiter
from jobs.services.submission import manifests, submit
from jobs.services.submission.bulk import BulkAction
from quotas.models import QuotaGrant
from tests.attacks import kube_door
from tests.fleet.api.rest_contract import OPERATIONS
from tests.support import books, quotas
from tests.support.people import person
from tests.support.world import POLICY, pytorch_job

SECRET = "secret-project"
AUTHOR = f"author-of-{SECRET}"
"""Who submits what is the other team's."""
OURS, THEIRS = ("team-a", "team-a2"), ("team-b", "team-b2")
H100 = f"{quotas.GPU}:h100"
MODELS = {"h100": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}
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
    by = AUTHOR if namespace in THEIRS else "test"
    submit.apply(manifests.parse(text.encode()), by=by, now=timezone.now())
    return Job.objects.get(name=name)


def two_teams(*, evicts: str, by_model: bool = False) -> tuple[Job, Job]:
    """A job of each team that has to do with jobs of the other; ``evicts`` names the namespace whose job takes its due back.

    A queue of both in which the first blocks the others, quota that one lends and the other takes back, nodes that are
    kept, and an object in a member that claims to be a copy. ``by_model``: quotas count the GPUs of a model as well.
    """
    lender, borrower = (OURS[1], THEIRS[1]) if evicts == "ours" else (THEIRS[1], OURS[1])
    cluster = books.a_cluster("north", gpus=9)
    cluster.access = member_clients.stored(Access("https://127.0.0.1:1"))
    cluster.save()
    cluster.nodes.update(labels=MODELS["h100"])
    block = {"queue-policy": "Block"}
    leaves = [
        quotas.leaf("shared", **gpus(4, 4, by_model), namespaces=[OURS[0], THEIRS[0]], attributes=block),
        quotas.leaf("lender", lender, **gpus(2, 4, by_model)),
        quotas.leaf("borrower", borrower, **gpus(0, 4, by_model)),
    ]
    total = {**quotas.PLENTY, quotas.GPU: 6, **({H100: 6} if by_model else {})}
    attributes = {"flavors": json.dumps(MODELS)} if by_model else None
    quotas.apply_tree(*leaves, total=total, attributes=attributes)
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
    adds_what_jobs_show_of_themselves(runs)
    records_values()
    for job in (waits, runs):
        an_incident(job)
    for namespace in (*OURS, *THEIRS):
        namespace_policies.save(namespace, {"pod_security": "baseline"}, now=timezone.now())
    audit.note(AUTHOR, door="rest", address="", request="", verb="mint", kind="Token", name=SECRET)
    return waits, runs


def gpus(low: int, high: int, by_model: bool) -> dict[str, Any]:
    limits = quotas.gpus(low, high)
    return {key: {**each, H100: each[quotas.GPU]} for key, each in limits.items()} if by_model else limits


def adds_what_jobs_show_of_themselves(job: Job) -> None:
    """State that a failed attempt left to the next, and a second copy in a cluster that does not answer."""
    former = Work.objects.get(job_uid=job.uid)
    Work.objects.filter(pk=former.pk).update(attempt=2)
    Attempt.objects.filter(job=job).update(number=2)
    south = books.a_cluster("south", gpus=0)
    Cluster.objects.filter(pk=south.pk).update(state=Cluster.State.NOT_READY)
    former.pk, former.cluster, former.state = None, south, Work.State.WITHDRAWING
    former.save(force_insert=True)
    Job.objects.filter(pk=job.pk).update(attempt=2)
    job.refresh_from_db()
    record_event(job, other_copies.POSSIBLE, other_copies.warning(job, 2), timezone.now())
    rule = StateRule(alias="CHECKPOINT", json_path="$.checkpoint")
    value = {"CHECKPOINT": {"value": f"/{SECRET}/7", "attempt": 1, "at": timezone.now().isoformat()}}
    PreservedState.objects.create(job_id=job.pk, attempt=1, rules=[rule.as_json()], values=value)
    Job.objects.filter(pk=job.pk).update(preserves_state=True)


def an_incident(job: Job) -> Incident:
    """The job's first attempt has failed."""
    now = timezone.now()
    times = {"began_at": now, "declared_at": now, "last_at": now}
    made = Incident.objects.create(
        kind="JobFailed", subject=f"job/{job.uid}", cluster_name="north", message=f"{job.name} failed", **times
    )
    run = {"cluster_name": "north", "placed_at": now, "ended_at": now, "outcome": "Failed", "cause": "CodeError"}
    Attempt.objects.update_or_create(
        job=job, number=1, defaults={"incident": made}, create_defaults={**run, "incident": made}
    )
    return made


def records_values() -> None:
    """Values over time, of two buckets."""
    now = timezone.now()
    for seconds in (0, 20, 40):
        recording.Recorder().run(now + timedelta(seconds=seconds))


def add_pods(cluster: Cluster, job: Job) -> None:
    fields = {"cluster": cluster, "namespace": job.namespace, "attempt": 1, "phase": "Running", "node": "node"}
    Pod.objects.create(
        name=f"{job.name}-master-0", uid="1", job_uid=job.uid, role="master", created_at=timezone.now(), **fields
    )
    now = timezone.now()
    notice = {"notice_id": "n", "cause": "reclaim", "scope": "Pods", "at": now, "deadline": now + timedelta(hours=1)}
    Notice.objects.create(job=job, attempt=1, cluster_name="north", node="node", pod=f"{job.name}-master-0", **notice)
    since = (now - timedelta(hours=1)).isoformat()
    gpu = Reading("0", utilization=0, namespace=job.namespace, pod=f"{job.name}-master-0", idle_since=since)
    gpus = {"gpus": gpu_readings.stored([gpu]), "measured": 1, "idle_since": since}
    NodeReading.objects.create(cluster=cluster, node="node", at=now + timedelta(days=1), **gpus)


def claims_to_be_a_copy(cluster: Cluster) -> None:
    provenance._reported.clear()
    copy = {"metadata": {"namespace": THEIRS[0], "name": f"{SECRET}-copy", "uid": "x"}}
    Provenance(cluster, {}).report(PYTORCH_JOBS, copy, "says it is a copy", timezone.now())


LOOKS: dict[str, tuple[str, ...]] = {
    "/api/v1/series/": (
        "metric=waiting,used,starts&by=team",
        "metric=waiting,used,starts&by=team&name=team-b",
        "metric=waiting,used&by=queue",
        "metric=used&by=cluster",
        "metric=used&by=model",
        "metric=waiting,used",
    ),
    "/api/v1/gpu-hours/": (
        *(f"by={owner}" for owner in Owner),
        *(f"by={owner}&form=csv" for owner in Owner),
        "from=2000-01-01T00:00:00Z&to=2000-01-02T00:00:00Z",
    ),
    "/api/v1/accounting/": tuple(f"by={owner}&form={form}" for owner in Accounted for form in ("json", "csv")),
    "/api/v1/goodput/": tuple(f"by={owner}&form={form}" for owner in Worked for form in ("json", "csv")),
    "/api/v1/waits/": tuple(f"by={owner}&form={form}" for owner in Waiter for form in ("json", "csv")),
    "/api/v1/lending/": ("form=json", "form=csv"),
    "/api/v1/shares/": ("form=json", "form=csv"),
    "/api/v1/attempts/": ("queue=root", "queue=root/shared", "cluster=north", f"queue={SECRET}"),
    "/api/v1/incidents/": ("cluster=north", "namespace=team-b", "queue=root/shared", "open=true"),
    "/api/v1/jobs/groups/": tuple(f"by={field}" for field in (*BY, "label:app")),
    "/api/v1/jobs/": ("search=secret", "namespace=team-b", "ordering=-created_at", "state=Running&state=Queued"),
    "/api/v1/jobs/export/": ("form=json", "namespace=team-b"),
    "/api/v1/events/": ("cluster=north", "queue=root/shared", "namespace=team-b", "search=secret"),
    "/api/v1/bindings/": ("search=secret",),
    "/api/v1/queueunits/": ("search=secret", "namespace=team-b"),
    "/api/v1/speeds/": ("gpus=2&step_seconds=1&gradient_bytes=1000000",),
    "/api/v1/schemas/fields/": ("api_version=kubeflow.org/v1&kind=PyTorchJob&path=spec",),
}
"""Queries of operations that read, beside none."""
PRIVATE = (
    "/api/v1/gpu-hours/",
    "/api/v1/accounting/",
    "/api/v1/goodput/",
    "/api/v1/waits/",
    "/api/v1/lending/",
    "/api/v1/shares/",
    "/api/v1/series/?metric=waiting,used,starts&by=team",
)
"""Answers in which the other team has no place at all; elsewhere names of namespaces are everybody's."""


def looks(path: str) -> list[str]:
    return [path, *(f"{path}?{query}" for query in LOOKS.get(path, ()))]


def known(job: Job) -> dict[str, str]:
    """What the paths of REST name, of one team."""
    return {"id": str(job.uid), "name": "north", "node": "node", "username": "mal"}


def rest_paths(*jobs: Job) -> list[tuple[str, str]]:
    """(method, path) of every operation, with what is of each of the jobs where its path names something of a job."""
    return list(dict.fromkeys(_rest_paths(*jobs)))


def _rest_paths(*jobs: Job) -> Iterator[tuple[str, str]]:
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
    if "/incidents/" in path:
        names["id"] = str(Incident.objects.get(attempts__job=job).uid)
    if "/audit/" in path:
        names["id"] = str(AuditEntry.objects.earliest("pk").pk)
    elif any(f"/{each}/" in path for each in ("history", "tokens", "leads", "grants", "passkeys", "views")):
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
            {"drain_node": {"cluster": "north", "node": "node"}},
            {"add_nodes": {"cluster": "north", "count": 3}},
            {"raise_quota": {"path": "root/shared", "max": {quotas.GPU: 5}}},
        ],
        "/api/v1/jobs/bulk/": [
            {"action": action, "ids": everyone, "preview": True, "priority": 3, "queue": "root/lender", "replicas": 1}
            for action in BulkAction
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
    "views",
}  # fmt: skip
OF_ONE_OBJECT: dict[str, Any] = {
    "queueunits/move": {"queue": "root/lender"},
    "jobs/resize": {"replicas": 2},
    "clusters/nodes/node": {"labels": {"rack": "r1"}},
    **dict.fromkeys(("clusters/impersonation", "clusters/short-lived-tokens"), {"on": False}),
    **dict.fromkeys(
        (
            "clusters/nodes/node", "clusters/nodes/node/cordon", "clusters/nodes/node/drain",
            "clusters/nodes/node/reclaim", "clusters/nodes/node/uncordon", "clusters/addons",
            "clusters", "clusters/check", "clusters/cordon", "clusters/credentials", "clusters/drain", "clusters/revive",
            "clusters/silence", "clusters/uncordon", "dependents", "grants", "jobs", "jobs/resume",
            "jobs/suspend",
            "keys/rotation", "leads", "login/code", "login/token",
            "namespaces", "policies", "queues/drain", "queues/hold", "queues/open", "queues/stop", "second-factor",
            "second-factor/code", "second-factor/passkeys", "second-factor/passkeys/1/remove", "second-factor/passkeys/options",
            "users/reset-second-factor", "users/revoke-tokens",
            "session", "tokens", "views", "users", "users/disable", "users/enable", "users/password", "users/tokens",
            "users/tokens/1",
        ),
        {},
    ),
}  # fmt: skip
"""Operations that answer about the object that their path names, or about what the caller has sent; with what they are sent."""
