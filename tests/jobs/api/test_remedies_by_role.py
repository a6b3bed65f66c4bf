"""Every reason a job can wait for, by every role: what helps, who may do it, that the server agrees, and that the job starts.

One table. A remedy is followed the way the console follows it: by the requests its button sends.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
import yaml

from fleet.models import Grant
from jobs.core.explain.remedies import REMEDIES, Kind
from jobs.core.reasons import Code
from jobs.models import Job
from quotas.models import QuotaGrant
from tests.jobs.api.explaining import explained
from tests.jobs.waiting import (
    after_a_failure,
    after_another,
    before_a_window,
    behind,
    beside_a_borrower,
    cordoned,
    crowded_by_pods,
    excluded,
    in_a_held_queue,
    not_selected,
    out_of_slots,
    outside_the_tree,
    over_budget,
    over_quota,
    selected_by_labels,
    silent,
    suspended,
    tainted,
    too_few_nodes,
    too_large,
    without_clusters,
    without_policy,
    without_tree,
)
from tests.support import books
from tests.support.books import GPU
from tests.support.people import client_of, person
from tests.support.world import pytorch_job

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


def ending_before(client: Any, change: dict, job: Job) -> Any:
    assert "convoy.dev/deadline" in change["message"]
    deadline = datetime.fromisoformat(change["at"]) - timedelta(minutes=1)
    body = books.annotated("convoy.dev/deadline", deadline.isoformat(), pytorch_job("waits", workers=0))
    return client.post("/api/v1/apply/", body, content_type="application/yaml")


def unchaining(client: Any, change: dict, job: Job) -> Any:
    assert change["message"].startswith("apply the job without convoy.dev/after")
    return client.post("/api/v1/apply/", pytorch_job("waits", workers=0), content_type="application/yaml")


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
    Case(Code.BUDGET_SPENT, Kind.RAISE_BUDGET, over_budget, None, LEADS, "quota-admin"),
    Case(Code.WINDOW_AHEAD, Kind.END_BEFORE, before_a_window, ending_before, EDITORS, "editor"),
    Case(Code.QUEUE_HELD, Kind.OPEN_QUEUE, in_a_held_queue, opening, LEADS, "quota-admin"),
    Case(Code.WAITING_FOR_JOB, Kind.CHANGE_AFTER, after_another, unchaining, EDITORS, "editor"),
    Case(Code.PREDECESSOR_FAILED, Kind.CHANGE_AFTER, after_a_failure, unchaining, EDITORS, "editor"),
    Case(Code.PREDECESSOR_FAILED, Kind.SUBMIT_AGAIN, after_a_failure, None, EDITORS, "editor"),
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
    Code.WAITING_FOR_CLUSTER: "has its cluster: shows it",
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
