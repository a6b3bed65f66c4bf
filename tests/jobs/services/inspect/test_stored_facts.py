"""What runtimes say is stored while a job runs, within bounds; a node that failed their check is not met by the job again."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.changes import events
from fleet.db import bulk
from fleet.models import Event, Node, NodeExclusion, Pod
from fleet.services.clusters import node_exclusions
from jobs.models import Attempt, RuntimeFact
from jobs.services.failover import node_faults
from jobs.services.follow import runtime_facts

pytestmark = pytest.mark.django_db(transaction=True)
SAVED = "[2026-11-20 10:00:00][info][0][mem_ckpt_complete][step={}][{{}}]\n"


def said(name, **content):
    event = {"event_time": "2026-11-20T10:00:00", "name": name, "event_type": "END", "content": content}
    return json.dumps(event).encode() + b"\n"


FAULTY = said("#agent_exit", success=False, exc_type="<class 'x.NodeCheckFailedError'>", exc_value="This node failed")
SLOW = said(
    "#agent_exit", success=False, exc_type="<class 'x.NodeCheckFailedError'>", exc_value="The node is a straggler"
)


@pytest.fixture
def look(training):
    """Reads what the job says, once so many seconds from now."""

    def read(job, seconds=0):
        Attempt.objects.filter(job=job, facts_due_at=None).update(facts_due_at=timezone.now())
        return runtime_facts.run(job.uid, 1, timezone.now() + timedelta(seconds=seconds))

    return read


def facts_of(job, **shown):
    return [row.data for row in RuntimeFact.objects.filter(job=job) if shown.items() <= row.data.items()]


def test_it_is_stored_once_and_shown_when_the_pods_are_gone(training, logs, look, as_admin):
    job = training()
    logs["llama-master-0"] = said("#rendezvous", round=1, rank=0, world_size=2) + SAVED.format(5).encode()
    assert look(job) and not look(job), "not again before it is due"
    assert look(job, 120)
    assert [row["kind"] for row in facts_of(job)] == ["Rendezvous", "Checkpoint"]
    assert Event.objects.get(reason="RuntimeRendezvous").message == "rendezvous 1: a world of 2"
    Pod.objects.all().delete()
    shown = as_admin.get(f"/api/v1/jobs/{job.uid}/runtime/").json()
    assert [fact["event"] for fact in shown["facts"]] == ["Rendezvous", "Checkpoint"]
    assert [each["step"] for each in shown["checkpoints"]] == [5]


def test_the_step_of_a_checkpoint_in_memory_is_corrected_by_the_next_look(training, logs, look):
    job = training()
    said_so_far = [SAVED.format(step).encode() for step in (5, 5)]
    for more in ([], [SAVED.format(20).encode()]):
        logs["llama-master-0"] = b"".join([*said_so_far, *more])
        look(job, 0 if not more else 120)
    assert [row["step"] for row in facts_of(job, kind="Checkpoint")] == [5, 20, 35]


@pytest.mark.parametrize(("end", "reason"), [(FAULTY, "NodeCheck"), (SLOW, "Straggler")])
def test_a_node_that_failed_the_check_is_excluded_for_the_job_alone(training, logs, look, end, reason):
    job = training(workers=4)
    Node.objects.create(cluster=job.cluster, name="node-d", ready=True)
    logs["llama-worker-2"] = end
    look(job)
    look(job, 240)
    [row] = NodeExclusion.objects.all()
    assert (row.node, row.job_uid, row.reason, row.faults) == ("node-d", job.uid, reason, 1)
    assert "NodeCheckFailedError" in row.message and node_exclusions.for_everyone() == {}
    assert Event.objects.filter(reason="NodeExcluded", regarding_uid=str(job.uid)).count() == 1


def test_a_pod_that_says_so_again_and_again_is_dealt_with_once(training, logs, look, monkeypatch):
    job = training(workers=4)
    Node.objects.create(cluster=job.cluster, name="node-d", ready=True)
    logs["llama-worker-2"] = b"".join(
        said("#agent_exit", exc_type="NodeCheckFailedError", exc_value=f"failed {number}") for number in range(50)
    )
    asked, shown = [], node_faults.shown_by_check
    monkeypatch.setattr(node_faults, "shown_by_check", lambda *a, **k: asked.append(a[2]) or shown(*a, **k))
    look(job)
    assert asked == ["node-d"] and NodeExclusion.objects.count() == 1


def test_what_it_says_again_unchanged_is_not_written_again(training, logs, look, monkeypatch):
    job = training()
    logs["llama-master-0"] = b"".join(SAVED.format(step).encode() for step in (5, 20, 35))
    look(job)
    written, upsert = [], bulk.upsert
    monkeypatch.setattr(bulk, "upsert", lambda rows, *a: written.extend(rows) or upsert(rows, *a))
    look(job, 120)
    assert written == []


def test_among_three_nodes_none_is_excluded_because_all_of_a_group_leave(training, logs, look):
    job = training(workers=3)
    Node.objects.create(cluster=job.cluster, name="node-b", ready=True)
    logs["llama-worker-0"] = FAULTY
    look(job)
    assert not NodeExclusion.objects.exists()
    assert "node-b is not excluded" in Event.objects.get(reason="RuntimeNodeCheck").message


def test_another_pods_name_in_a_line_excludes_no_node(training, logs, look):
    job = training(workers=4)
    forged = said("#agent_exit", exc_type="NodeCheckFailedError", pod_name="llama-worker-3")
    logs["llama-worker-0"] = forged
    look(job)
    assert not NodeExclusion.objects.exists()


def test_a_pod_that_failed_is_read_at_once_and_once(training, logs, look, monkeypatch):
    job = training()
    look(job)
    sent = []
    monkeypatch.setattr(events, "enqueue", lambda *task: sent.append(task))
    job.api_version, job.kind = "elastic.iml.github.io/v1alpha1", "ElasticJob"
    now, keys = timezone.now(), {(job.uid, 1)}
    runtime_facts.hurry({job.uid: job}, keys, now)
    assert sent == [], "nothing has failed"
    Pod.objects.filter(name="llama-worker-0").update(phase="Failed")
    runtime_facts.hurry({job.uid: job}, keys, now)
    assert sent == [("jobs.read_runtime", str(job.uid), 1)]
    assert runtime_facts.run(job.uid, 1, now)
    runtime_facts.hurry({job.uid: job}, keys, now)
    assert len(sent) == 1
    known = Pod.objects.get(name="llama-worker-0")
    for number in range(50):
        known.pk, known.name, known.uid = None, f"again-{number}", f"again-{number}"
        known.save(force_insert=True)
    for _ in range(3):
        runtime_facts.hurry({job.uid: job}, keys, now)
        runtime_facts.run(job.uid, 1, now)
    assert len(sent) == 2, "however many have failed"


def test_an_endless_log_fills_neither_the_table_nor_the_timeline(training, logs, look):
    job = training(workers=4)
    for number in range(4):
        logs[f"llama-worker-{number}"] = b"".join([said("#process_restart", restart_count=n) for n in range(60)])
        logs[f"llama-worker-{number}"] += b"".join([said("#process_restart", failures=f"{n}") for n in range(60)])
    for seconds in (0, 240, 480):
        look(job, seconds)
    assert RuntimeFact.objects.count() <= RuntimeFact.KEPT
    assert Event.objects.filter(reason="RuntimeRestart").count() <= 30
    assert job.state == type(job).objects.get(pk=job.pk).state


def test_only_the_latest_are_kept(training, logs, look, monkeypatch):
    job = training()
    monkeypatch.setattr(RuntimeFact, "KEPT", 3)
    logs["llama-worker-0"] = b"".join([said("#process_restart", restart_count=n) for n in range(9)])
    look(job)
    assert [row["restarts"] for row in facts_of(job)] == [6, 7, 8]


def test_a_member_that_is_away_is_asked_again_and_an_ended_attempt_no_more(training, look, monkeypatch):
    job, of_pod = training(), runtime_facts._of_pod
    job.cluster.access = {**job.cluster.access, "server": "https://127.0.0.1:1"}
    job.cluster.save()
    asked = []
    monkeypatch.setattr(runtime_facts, "_of_pod", lambda pod, author: asked.append(pod) or of_pod(pod, author))
    assert look(job) and Attempt.objects.get().facts_due_at > timezone.now()
    assert len(asked) == 1, "its other pods are not waited for"
    Attempt.objects.update(ended_at=timezone.now())
    assert look(job, 120) and Attempt.objects.get().facts_due_at is None


def test_a_time_from_before_the_clock_was_set_back_is_due(training):
    job = training()
    Attempt.objects.update(facts_due_at=timezone.now() + timedelta(days=3))
    assert runtime_facts.run(job.uid, 1, timezone.now())


def test_a_job_that_is_deleted_while_it_is_read_is_no_error(training, logs, look, monkeypatch):
    job = training()
    logs["llama-worker-0"] = said("#process_restart", restart_count=1)
    read = runtime_facts._of_pod

    def deleting(*pod):
        Attempt.objects.all().delete()
        type(job).objects.filter(pk=job.pk).delete()
        return read(*pod)

    monkeypatch.setattr(runtime_facts, "_of_pod", deleting)
    look(job)
    assert not RuntimeFact.objects.exists()
