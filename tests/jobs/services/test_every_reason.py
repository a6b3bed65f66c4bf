"""Every reason of the closed list is produced by the product itself: one job for each, brought there through the services.

A code that is added without a way to come about, or whose way is closed, fails here.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import yaml
from django.utils import timezone

from fleet.core.members import observed
from fleet.core.node_exclusions import ExclusionReason
from fleet.models import Cluster
from fleet.services.clusters import node_exclusions
from fleet.services.clusters.node_exclusions import Fault
from jobs.core.reasons import Code
from jobs.models import ClaimLocation, Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.follow.status import JobEventHandler
from jobs.services.follow.timeouts import health, max_wait, time_limits
from jobs.services.inspect import explaining
from jobs.services.scheduling import loop
from jobs.services.submission.changes import actions
from tests.jobs import waiting
from tests.jobs.services import claims, lost_cluster
from tests.support import books
from tests.support.books import GPU, a_cluster
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
NAME = "waits"
MOVES = "  failover: {application: {decisionConditions: {tolerationSeconds: 5}}}\n  propagateDeps: true"
MOVED = POLICY.replace("  propagateDeps: true", MOVES)


@pytest.fixture(autouse=True)
def no_cache_of_another_test():
    loop._idle_caches.clear()


def submit(policy: str = POLICY, **fields: Any) -> None:
    waiting.submitted(yaml.safe_load(policy), **fields)


def annotated(name: str, value: str, policy: str = POLICY) -> str:
    body = yaml.safe_load(policy)
    body["metadata"]["annotations"] = {name: value}
    return yaml.safe_dump(body)


def later(seconds: float) -> None:
    health.check(timezone.now() + timedelta(seconds=seconds))


def applied() -> None:
    Work.objects.update(state=Work.State.APPLIED, object_uid="u1", applied_at=timezone.now())


def sent(policy: str = POLICY) -> None:
    a_cluster()
    submit(policy)
    applied()


def reported(condition: str, policy: str = POLICY) -> None:
    sent(policy)
    books.report(NAME, condition)


# codes of a job as a whole


def not_looked_at() -> None:
    a_cluster()
    waiting.submitted(cycles=0)


def evicting() -> None:
    """A borrower of the whole fleet, and a job that is within its min."""
    a_cluster()
    waiting.a_tree(low={GPU: 4})
    borrower, policy = (yaml.safe_load(text) for text in (pytorch_job("borrower", workers=0, gpus=8), POLICY))
    for document in (borrower, policy):
        document["metadata"]["namespace"] = "speech"
    books.apply(yaml.safe_dump_all([policy, borrower]))
    books.cycle()
    applied()
    waiting.submitted(gpus=4, cycles=2)


def evicted() -> None:
    evicting()
    Job.objects.filter(name=NAME).update(name="preemptor")
    Job.objects.filter(name="borrower").update(name=NAME)


def refused_by_the_database() -> None:
    north, now = a_cluster(), timezone.now()
    job = waiting.submitted(cycles=0)
    Work.objects.create(
        job_uid=job.uid, attempt=1, cluster=north, api_version=job.api_version, kind=job.kind,
        namespace=job.namespace, name=job.name, due_at=now, created_at=now,
    )  # fmt: skip
    books.cycle()


def placed() -> None:
    a_cluster()
    submit()


def behind_its_former_copy() -> None:
    """North refuses the credentials, so that the copy there can be removed by nobody before the next one is sent to south."""
    sent()
    Cluster.objects.update(state=Cluster.State.NOT_READY, state_reason="CredentialsRefused")
    a_cluster("south")
    for act in (actions.suspend, actions.resume):
        act(books.job(NAME), by="test", now=timezone.now())
    Work.objects.update(state=Work.State.WITHDRAWING)
    books.cycle()
    dispatcher.push(Work.objects.get(attempt=2).pk, timezone.now)


def pods_refused() -> None:
    reported("Created")
    about = {"kind": "PyTorchJob", "namespace": "default", "name": NAME, "uid": "u1"}
    event = {
        "metadata": {"namespace": "default"},
        "type": "Warning",
        "involvedObject": about,
        "message": "exceeded quota",
    }
    refusal = observed.refusal({**event, "reason": "FailedCreatePod"})
    JobEventHandler().on_refusals(Cluster.objects.get().pk, [refusal] if refusal else [], timezone.now())


def lost() -> None:
    job = lost_cluster.running(POLICY)
    lost_cluster.north(Cluster.State.UNKNOWN)
    Job.objects.filter(pk=job.pk).update(name=NAME)
    later(3600)


def waiting_for_its_cluster() -> None:
    job = lost_cluster.running(annotated("convoy.dev/unreachable-cluster", "Wait"))
    lost_cluster.north(Cluster.State.UNKNOWN)
    Job.objects.filter(pk=job.pk).update(name=NAME)
    later(3600)


def vanished() -> None:
    reported("Running")
    job = books.job(NAME)
    JobEventHandler().on_delete(job.cluster_id, books.resource(NAME), [books.copy(NAME, {})], timezone.now())


def exhausted() -> None:
    reported("Failed", annotated("convoy.dev/max-attempts", "1", MOVED))
    later(60)


def waited_too_long() -> None:
    books.apply(POLICY, annotated("job-supervisor.kube-ai.io/max-wait-time", "60", pytorch_job(NAME)))
    books.cycle()
    max_wait.run(timezone.now() + timedelta(seconds=61))


def ran_too_long() -> None:
    waiting.a_tree(attributes={"max-runtime": "1h"})
    reported("Running")
    time_limits.run(timezone.now() + timedelta(hours=2))


def past_its_deadline() -> None:
    books.apply(POLICY, annotated("convoy.dev/deadline", "1h", pytorch_job(NAME)))
    time_limits.run(timezone.now() + timedelta(hours=2))


def before_its_turn() -> None:
    waiting.after_another()


def after_a_failure() -> None:
    waiting.after_a_failure()


def deleted() -> None:
    sent()
    actions.delete(books.job(NAME), by="test", now=timezone.now())


OF_A_JOB: dict[Code, Callable[[], Any]] = {
    Code.WAITING_FOR_SCHEDULER: not_looked_at,
    Code.NO_POLICY: waiting.without_policy,
    Code.SCHEDULING_SUSPENDED: waiting.without_tree,
    Code.SUSPENDED: waiting.suspended,
    Code.QUOTA_EXCEEDED: waiting.over_quota,
    Code.MAX_JOBS_REACHED: waiting.out_of_slots,
    Code.NEVER_FITS: waiting.too_large,
    Code.BEHIND_IN_QUEUE: waiting.behind,
    Code.QUEUE_HELD: waiting.in_a_held_queue,
    Code.BUDGET_SPENT: waiting.over_budget,
    Code.WINDOW_AHEAD: waiting.before_a_window,
    Code.NO_QUOTA_FOR_NAMESPACE: waiting.outside_the_tree,
    Code.WAITING_FOR_RECLAIM: evicting,
    Code.RECLAIMED: evicted,
    Code.NO_CLUSTER: waiting.without_clusters,
    Code.NO_CLUSTER_FITS: waiting.cordoned,
    Code.PLAN_REJECTED: refused_by_the_database,
    Code.WAITING_FOR_MEMBER: placed,
    Code.WAITING_FOR_PURGE: behind_its_former_copy,
    Code.WAITING_FOR_PODS: lambda: reported("Created"),
    Code.MEMBER_REFUSED: pods_refused,
    Code.APPLICATION_UNHEALTHY: lambda: reported("Failed", MOVED),
    Code.CLUSTER_LOST: lost,
    Code.WAITING_FOR_CLUSTER: waiting_for_its_cluster,
    Code.COPY_VANISHED: vanished,
    Code.ATTEMPTS_EXHAUSTED: exhausted,
    Code.MAX_WAIT_EXCEEDED: waited_too_long,
    Code.MAX_RUNTIME_EXCEEDED: ran_too_long,
    Code.DEADLINE_EXCEEDED: past_its_deadline,
    Code.WAITING_FOR_JOB: before_its_turn,
    Code.PREDECESSOR_FAILED: after_a_failure,
    Code.DELETING: deleted,
    Code.FAILED: lambda: reported("Failed"),
}


# codes of one cluster


def with_data_elsewhere() -> None:
    a_cluster("east")
    ClaimLocation.objects.create(
        namespace="default", name="ckpt", cluster=Cluster.objects.get(), created_at=timezone.now()
    )
    a_cluster()
    books.apply(claims.job(NAME, "ckpt", gpus=9))
    books.cycle()


def unlike(**fields: Any) -> None:
    a_cluster()
    Cluster.objects.update(**fields)
    submit()


def of_another_scheduler() -> None:
    a_cluster()
    body = yaml.safe_load(pytorch_job(NAME, workers=0))
    for replica in body["spec"]["pytorchReplicaSpecs"].values():
        replica["template"]["spec"]["schedulerName"] = "volcano"
    books.apply(yaml.safe_dump(body))
    books.cycle()


def with_reservations() -> None:
    a_cluster()
    submit(annotated("convoy.dev/fit", "Reservation"))


def failed_there() -> None:
    reported("Failed", MOVED)
    later(60)
    books.cycle()


def on_nodes_that_are_too_small() -> None:
    a_cluster(gpus=4)
    node = Cluster.objects.get().nodes.get()
    node.pk, node.name = None, "other"
    node.save()
    submit(gpus=6)


def on_an_excluded_node() -> None:
    fault = Fault("k", timezone.now(), ExclusionReason.INFRASTRUCTURE, "GpuUnhealthy")
    node_exclusions.report(a_cluster(), "node", fault, timezone.now())
    submit()


def behind_a_big_gang() -> None:
    a_cluster()
    waiting.runs("first", gpus=6)
    waiting.runs("big", gpus=8)
    submit(gpus=1, duration="9h")


OF_A_CLUSTER: dict[Code, Callable[[], Any]] = {
    Code.FITS: placed,
    Code.NOT_SELECTED: waiting.not_selected,
    Code.DATA_ELSEWHERE: with_data_elsewhere,
    Code.NOT_READY: waiting.silent,
    Code.CORDONED: waiting.cordoned,
    Code.CAPACITY_UNKNOWN: lambda: unlike(synced_at=None),
    Code.UNTOLERATED_TAINT: waiting.tainted,
    Code.KIND_NOT_SERVED: lambda: unlike(apis={}),
    Code.SCHEDULER_NOT_SERVED: of_another_scheduler,
    Code.CANNOT_RESERVE: with_reservations,
    Code.FAILED_HERE: failed_there,
    Code.NOT_ENOUGH_FREE: lambda: (a_cluster(), submit(workers=2, gpus=4)),
    Code.NO_NODE_FOR_POD: on_nodes_that_are_too_small,
    Code.NODES_EXCLUDED: on_an_excluded_node,
    Code.KEPT_FOR_GANG: behind_a_big_gang,
}


@pytest.fixture(autouse=True)
def big_gangs_wait_for_nothing(settings):
    settings.CONVOY_CYCLE = replace(settings.CONVOY_CYCLE, reservation_patience_s=0)


def test_each_code_has_its_job():
    assert {*OF_A_JOB, *OF_A_CLUSTER} == set(Code)


@pytest.mark.parametrize("code", OF_A_JOB)
def test_a_job_comes_to_have_it(code):
    OF_A_JOB[code]()
    assert books.job(NAME).reason["code"] == code


@pytest.mark.parametrize("code", OF_A_CLUSTER)
def test_a_cluster_is_described_by_it(code):
    OF_A_CLUSTER[code]()
    explanation = explaining.explain_job(books.job(NAME), timezone.now())
    assert code in {verdict.code for verdict in explanation.clusters}
