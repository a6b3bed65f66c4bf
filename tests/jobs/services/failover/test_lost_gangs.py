"""A gang on a lost node leaves it at once and does not meet it again; what stays does so for a reason, which is shown."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
import yaml
from django.db import connection
from django.utils import timezone

from fleet.db import clock
from fleet.models import Cluster, Event, Node, NodeExclusion, Pod
from fleet.services.clusters import freshness
from jobs.kinds import registry
from jobs.models import Attempt, Job, Work
from jobs.services.failover import eviction_rate, lost_gangs
from jobs.services.follow.sweep import Sweeper
from jobs.services.follow.timeouts import health
from jobs.services.inspect import explaining
from jobs.services.scheduling import loop
from tests.jobs.services.resizing import elastic
from tests.support import books
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
NOW = timezone.now()
INDEXED = {"completionMode": "Indexed"}
UNREACHABLE, NOT_READY = "node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"
MOVED = POLICY.replace(
    "  placement", "  failover: {application: {decisionConditions: {tolerationSeconds: 600}}}\n  placement", 1
)


def after(seconds):
    return NOW + timedelta(seconds=seconds)


@pytest.fixture(autouse=True)
def north():
    """Six nodes of eight GPUs."""
    loop._idle_caches.clear()
    cluster = books.a_cluster("north")
    first = cluster.nodes.get()
    first.delete()
    for name in "abcdef":
        cluster.nodes.create(name=name, ready=True, allocatable=first.allocatable)
    return cluster


def policy(**annotations):
    body = yaml.safe_load(MOVED)
    body["metadata"]["annotations"] = annotations
    return yaml.safe_dump(body)


def gang(*tolerations):
    body = yaml.safe_load(pytorch_job("llama", workers=2, gpus=8))
    for role in body["spec"]["pytorchReplicaSpecs"].values():
        role["template"]["spec"]["tolerations"] = list(tolerations)
    return yaml.safe_dump(body)


def has_pod(job, name, node, **fields):
    role, _, index = name.rpartition("-")
    about = {"role": role, "index": int(index), "phase": "Running", "created_at": NOW, **fields}
    names = {"namespace": "default", "name": f"{job.name}-{name}", "uid": f"{name}/{job.attempt}"}
    Pod.objects.create(cluster=job.cluster, job_uid=job.uid, attempt=job.attempt, node=node, **names, **about)


def runs(policy=MOVED, manifest="", pods=("master-0", "worker-0", "worker-1")):
    """A job of which each pod runs on a node of its own: a, b, c."""
    books.apply(policy, manifest or gang())
    books.cycle(NOW)
    books.sent()
    books.report("llama", "Running", now=NOW)
    job = books.job("llama")
    for name, node in zip(pods, "abc", strict=False):
        has_pod(job, name, node)
    return job


def goes_down(*nodes, at=0.0, taint=UNREACHABLE):
    taints = [{"key": taint, "effect": "NoExecute"}]
    Node.objects.filter(name__in=nodes).update(ready=False, not_ready_since=after(at), taints=taints)


def comes_back(*nodes):
    Node.objects.filter(name__in=nodes).update(ready=True, not_ready_since=None, taints=[])


def said(job):
    return explaining.explain_job(books.job(job.name), after(21)).message


def test_it_leaves_once_the_node_is_lost_and_its_replacement_does_not_meet_the_node():
    job = runs()
    goes_down("b")
    assert "node b of north, where it has pods, has not been ready since" in said(job)
    assert "it leaves them once that has lasted 20 s" in said(job)
    assert health.check(after(19)) == 0
    assert health.check(after(21)) == 1 and health.check(after(22)) == 0
    job.refresh_from_db()
    assert (job.state, job.reason["code"], job.reason["cause"]) == ("Moving", "ApplicationUnhealthy", "Infrastructure")
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.cause) == ("Failed", "Infrastructure")
    assert attempt.message == job.reason["message"] and "node b of north, where it has pods" in attempt.message
    assert [(pod["pod"], pod["node"], pod["node_ready"]) for pod in attempt.evidence] == [
        ("llama-worker-0", "b", False)
    ]
    assert Work.objects.get().state == "Withdrawing"
    assert "node b of north" in Event.objects.get(reason="Moving").message
    comes_back("b")
    Pod.objects.all().delete()
    books.gone("llama")
    books.cycle(after(30))
    assert books.job("llama").attempt == 2
    assert Work.objects.get(attempt=2).avoided_nodes == ["b"]
    [excluded] = NodeExclusion.objects.filter(ended_at=None)
    assert (excluded.node, excluded.job_uid, excluded.reason) == ("b", job.uid, "Infrastructure")


def test_a_node_that_was_ready_again_in_between_takes_no_gang_with_it(monkeypatch):
    job = runs()
    for at in (0, 15, 30):
        goes_down("b", at=at)
        assert health.check(after(at + 14)) == 0
        comes_back("b")
    goes_down("b", at=45)
    judge = lost_gangs.why_it_stays

    def slow(loss, now):
        comes_back("b")
        return judge(loss, now)

    monkeypatch.setattr(lost_gangs, "why_it_stays", slow)
    assert health.check(after(66)) == 0
    assert books.job(job.name).state == "Running" and not Attempt.objects.exclude(cause="").exists()


@pytest.mark.parametrize("change", ["not seen since", "lost anew", "not ready"])
def test_nothing_is_done_by_what_was_judged_before_a_pause(monkeypatch, change):
    job = runs()
    goes_down("b")
    rows, judge, real = Cluster.objects.filter(name="north"), lost_gangs.why_it_stays, clock.now
    rows.update(watched_since=NOW, watched_until=after(21))

    def slow(loss, now):
        if change == "not seen since":
            monkeypatch.setattr(lost_gangs.clock, "now", lambda: real() + timedelta(seconds=60))
        elif change == "lost anew":
            goes_down("b", at=1)
        else:
            rows.update(state=Cluster.State.NOT_READY)
        return judge(loss, now)

    monkeypatch.setattr(lost_gangs, "why_it_stays", slow)
    assert health.check(after(22)) == 0
    assert books.job(job.name).state == "Running"


def test_gangs_leave_within_the_rate_of_their_cluster_and_the_first_in_rank_first(north):
    first = runs()
    books.apply(MOVED, gang().replace("llama", "mistral"))
    books.cycle(NOW)
    books.sent()
    books.report("mistral", "Running", now=NOW)
    second = books.job("mistral")
    has_pod(second, "worker-0", "b")
    Job.objects.filter(pk=second.pk).update(priority=first.priority + 1)
    north.refresh_from_db()
    Cluster.objects.filter(pk=north.pk).update(labels=north.labels | {eviction_rate.PER_MINUTE: "1"})
    goes_down("b")
    assert health.check(after(21)) == 1 and health.check(after(23)) == 0
    assert (books.job("mistral").state, books.job("llama").state) == ("Moving", "Running")
    why = explaining.explain_job(books.job("llama"), after(24)).message
    assert "it leaves them; the next leave at " in why and "since 1 job a minute may leave north (label convoy" in why
    assert "a minute may leave" not in explaining.explain_job(books.job("llama"), after(82)).message
    assert health.check(after(82)) == 1
    assert Event.objects.filter(reason="EvictionsLimited").count() == 1


def test_a_node_that_is_lost_after_the_cause_is_known_is_excluded_too():
    job = runs()
    Attempt.objects.update(cause="Evicted")
    goes_down("b")
    assert health.check(after(21)) == 1
    assert Attempt.objects.get().cause == "Evicted"
    assert NodeExclusion.objects.get(job_uid=job.uid).node == "b"


def test_nodes_that_are_lost_together_cost_one_move_and_none_of_them_is_met_again():
    job = runs()
    goes_down("a", "b")
    goes_down("c", at=3)
    assert health.check(after(21)) == 1
    assert health.check(after(24)) == 0
    assert set(NodeExclusion.objects.filter(job_uid=job.uid).values_list("node", flat=True)) == {"a", "b"}
    assert Attempt.objects.filter(ended_at=None).count() == 0 and Attempt.objects.count() == 1
    assert "nodes a, b of north, where it has pods, have not been ready" in Attempt.objects.get().message


@pytest.mark.parametrize(("nodes", "places"), [("b", 1), ("bc", 0)])
def test_a_second_loss_of_one_node_leaves_it_the_cluster_and_that_of_more_does_not(nodes, places):
    """The lost node is excluded, and its cluster has others; of one that loses several at once more is to be feared."""
    job = runs()
    lost = [{"pod": f"llama-worker-{node}", "phase": "Running", "node": node, "node_ready": False} for node in nodes]
    about = {"cluster_name": "north", "placed_at": NOW, "ended_at": NOW, "outcome": "Failed", "cause": "Infrastructure"}
    Attempt.objects.update(number=2)
    Job.objects.update(attempt=2)
    Work.objects.update(attempt=2)
    Pod.objects.update(attempt=2)
    Attempt.objects.create(job=job, number=1, evidence=lost, **about)
    goes_down(*nodes)
    assert health.check(after(21)) == 1
    Work.objects.update(state="Gone")
    Pod.objects.all().delete()
    loop._idle_caches.clear()
    assert loop.run(lambda: after(25)) == places
    assert loop.run(lambda: after(25 + 120)) == 1 - places


@pytest.mark.parametrize(
    ("stated", "state"), [({}, "Moving"), ({"convoy.dev/failure-budgets": "Infrastructure=4"}, "Failed")]
)
def test_nodes_that_flap_end_no_job_but_by_the_budget_that_its_policy_states(stated, state):
    job = runs(policy(**{"convoy.dev/max-attempts": "1"}, **stated))
    about = {"cluster_name": "north", "placed_at": NOW, "ended_at": NOW, "outcome": "Failed", "cause": "Infrastructure"}
    lost = [{"pod": "llama-worker-0", "phase": "Running", "node": "b", "node_ready": False}]
    for number in range(2, 6):
        Attempt.objects.create(job=job, number=number, evidence=lost, **about)
    goes_down("b")
    assert health.check(after(21)) == 1
    assert books.job(job.name).state == state


def test_most_nodes_of_a_cluster_down_at_once_move_no_gang_and_it_is_said():
    job = runs()
    goes_down("a", "b", "d", "e")
    assert health.check(after(3600)) == 0
    assert "more than half of its nodes: none of them counts as lost" in said(job)


def test_nothing_is_decided_by_what_was_seen_before_a_pause():
    job = runs()
    goes_down("b")
    rows = Cluster.objects.filter(name="north")
    rows.update(watched_since=after(-100), watched_until=after(10))
    job.refresh_from_db()
    assert health.check(after(60)) == 0, "the last look was 50 s ago"
    assert lost_gangs.describe(job, after(60)).endswith("nothing is decided about them until north is seen again")
    freshness.confirm([rows.get().pk], after(60))
    assert health.check(after(61)) == 0, "after a gap in watching the time counts from its end"
    freshness.confirm([rows.get().pk], after(79))
    assert health.check(after(81)) == 1


@pytest.mark.parametrize("state", [Cluster.State.UNKNOWN, Cluster.State.NOT_READY])
def test_nothing_is_decided_in_a_cluster_that_does_not_answer(state):
    job = runs()
    goes_down("b")
    Cluster.objects.update(state=state)
    assert health.check(after(60)) == 0
    assert said(job).endswith(f"nothing is decided about them while north is {state}")


STAYS = {
    "no failover": (POLICY, gang(), "its policy has no failover.application"),
    "waits": (
        policy(**{"convoy.dev/unreachable-cluster": "Wait"}),
        gang(),
        "its policy says convoy.dev/unreachable-cluster: Wait",
    ),
    "tolerates": (
        MOVED,
        gang({"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute"}),
        "its pods tolerate such nodes for good",
    ),
    "tolerates for a while": (
        MOVED,
        gang({"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}),
        f"its pods tolerate such nodes until {after(60):%Y-%m-%d %H:%M:%S} UTC",
    ),
}


@pytest.mark.parametrize("case", STAYS)
def test_it_stays_for_a_reason_that_is_said_once(case):
    policy, manifest, why = STAYS[case]
    job = runs(policy, manifest)
    goes_down("b")
    assert health.check(after(21)) == health.check(after(23)) == 0
    assert books.job(job.name).state == "Running"
    assert said(job).endswith(f": it stays, because {why}")
    event = Event.objects.get(reason="NodeLost")
    assert event.message.endswith(f": it stays, because {why}") and event.count == 1
    comes_back("b")
    assert "it stays" not in said(job)
    goes_down("b", at=100)
    health.check(after(121))
    assert Event.objects.filter(reason="NodeLost").count() == 2, "it was lost again"


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
        {"operator": "Exists"},
        {"key": NOT_READY, "operator": "Exists"},
    ],
    ids=["for a minute", "of all taints", "of another taint"],
)
def test_it_leaves_when_its_author_does_not_have_it_stay(toleration):
    runs(MOVED, gang(toleration))
    goes_down("b")
    assert health.check(after(61)) == 1


def test_an_elastic_job_goes_on_with_the_pods_that_are_left_while_they_are_enough():
    job = runs(MOVED, elastic("llama", 3, least=2), pods=("worker-0", "worker-1", "worker-2"))
    goes_down("b")
    assert health.check(after(21)) == 0
    assert said(job).endswith("it stays, because it goes on with the pods that are left")
    goes_down("b", "c")
    assert health.check(after(21)) == 1


@pytest.mark.parametrize(("backend", "leaves"), [("", 1), ("c10d", 1), ("etcd-v2", 0)])
def test_an_elastic_job_does_not_go_on_without_the_worker_at_which_the_others_meet(backend, leaves):
    body = yaml.safe_load(elastic("llama", 3, least=2))
    body["spec"]["elasticPolicy"] |= {"rdzvBackend": backend} if backend else {}
    runs(MOVED, yaml.safe_dump(body), pods=("worker-0", "worker-1", "worker-2"))
    goes_down("a")
    assert health.check(after(21)) == leaves


def test_a_pod_whose_place_another_has_taken_takes_no_gang_with_it():
    job = runs()
    has_pod(job, "worker-2", "d", index=0)
    goes_down("b")
    assert health.check(after(21)) == 0
    assert said(job).endswith("it stays, because others have taken the place of these pods")


def test_a_pod_that_has_ended_there_takes_no_gang_with_it():
    runs()
    Pod.objects.filter(node="b").update(phase="Succeeded")
    goes_down("b")
    assert health.check(after(21)) == 0


def test_a_failed_copy_that_waits_for_its_policy_leaves_at_once_and_is_kept_if_that_says_so():
    kept = MOVED.replace("{tolerationSeconds: 600}", "{tolerationSeconds: 600}, purgeMode: Never")
    job = runs(kept)
    Pod.objects.filter(node="a").update(phase="Failed", exit_code=1)
    books.report("llama", "Failed", now=NOW)
    assert books.job(job.name).reason["cause"] == "CodeError"
    goes_down("b")
    assert health.check(after(21)) == 1
    assert Attempt.objects.get().cause == "Infrastructure"
    assert Work.objects.get().state == "Kept"


def test_two_passes_at_once_move_it_once():
    runs()
    goes_down("b")
    start = Barrier(2)

    def check(_):
        try:
            start.wait(60)
            return health.check(after(21))
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as processes:
        assert sorted(processes.map(check, range(2))) == [0, 1]
    assert Event.objects.get(reason="Moving").count == 1
    assert NodeExclusion.objects.filter(job_uid__isnull=False).get().faults == 1


def test_the_sweep_goes_on_while_a_node_with_pods_may_become_lost():
    runs()
    Job.objects.update(unhealthy_since=None)
    sweeper = Sweeper()
    sweeper.run(NOW)
    assert not sweeper.run(after(2))
    goes_down("b")
    assert Sweeper().run(after(4))
    waiting = Sweeper()
    assert waiting.run(after(6)) and waiting.run(after(8))


@pytest.mark.parametrize(
    ("kind", "manifest", "role", "left", "goes_on"),
    [
        (("batch/v1", "Job"), {"spec": {"parallelism": 4, "completions": 8}}, "worker", 3, True),
        (("batch/v1", "Job"), {"spec": {**INDEXED, "parallelism": 4, "completions": 8}}, "worker", 3, True),
        (("batch/v1", "Job"), {"spec": {**INDEXED, "parallelism": 4, "completions": 4}}, "worker", 3, False),
        (("batch/v1", "Job"), {"spec": {"parallelism": 1, "completions": 1}}, "worker", 0, False),
        (("sparkoperator.k8s.io/v1beta2", "SparkApplication"), {"spec": {}}, "executor", 0, True),
        (("sparkoperator.k8s.io/v1beta2", "SparkApplication"), {"spec": {}}, "driver", 0, False),
        (("elastic.iml.github.io/v1alpha1", "ElasticJob"), {"spec": {}}, "worker", 1, True),
        (("elastic.iml.github.io/v1alpha1", "ElasticJob"), {"spec": {}}, "worker", 0, False),
        (("elastic.iml.github.io/v1alpha1", "ElasticJob"), {"spec": {}}, "dlrover-master", 1, False),
        (("kubeflow.org/v2beta1", "MPIJob"), {"spec": {"mpiReplicaSpecs": {}}}, "worker", 3, False),
    ],
)
def test_what_a_kind_goes_on_without(kind, manifest, role, left, goes_on):
    assert registry.kind_of(*kind).goes_on_without(manifest, role, left, {1}) is goes_on
