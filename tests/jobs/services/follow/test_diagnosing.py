"""Why an attempt failed is read from the logs of the pods that ended first, once, and decides what becomes of the job."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from fleet.kube.resources import PODS
from fleet.models import Cluster, Event, Pod
from fleet.services.members import member_clients, pod_logs
from jobs.models import Attempt
from jobs.services.failover import returns
from jobs.services.follow import diagnosing
from jobs.services.follow.timeouts import health
from tests.support import books
from tests.support.members import api, members
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["members"]
LOGS = Path(__file__).parents[2] / "core" / "failover" / "logs"
FAILED = {"phase": "Failed", "exit_code": 1}


class Logs:
    """What the pods of a member printed, now and before their last restart; counts how often each was read."""

    def __init__(self):
        self.texts, self.formers, self.reads = {}, {}, []

    def read(self, namespace, name, offset):
        self.reads.append(name)
        text = self.texts.get(name, b"")
        return text[offset:], True

    def former(self, namespace, name):
        self.reads.append(f"{name} before")
        return self.formers.get(name)


@pytest.fixture
def logs():
    return Logs()


@pytest.fixture
def llama(members, logs):
    """Runs on north, whose API serves these logs; south has room for it."""
    server = members("north", log_source=logs)
    for name in ("north", "south"):
        cluster = books.a_cluster(name)
        cluster.access = member_clients.stored(server.access())
        cluster.save()
    books.apply(pytorch_job("llama", workers=2))
    books.cycle()
    books.sent()
    books.report("llama", "Running")
    for role in ("master-0", "worker-0", "worker-1"):
        body = {"metadata": {"name": f"llama-{role}", "namespace": "default"}, "spec": {"nodeName": "node"}}
        body["spec"]["containers"] = [{"name": "pytorch", "image": "train"}]
        api(server).create(PODS.path("default"), body)
    return books.job("llama")


def pod(job, name, *, ended_at="2026-11-20T10:00:00Z", message="", state="state", **fields):
    ended = {"exitCode": fields.get("exit_code", 0), "finishedAt": ended_at, "message": message}
    container = {"name": "pytorch", state: {"terminated": ended}, "restartCount": fields.get("restarts", 0)}
    known = {
        "uid": name, "job_uid": job.uid, "attempt": job.attempt, "node": "node", "phase": "Running",
        "created_at": timezone.now(), "running_since": timezone.now(), "details": json.dumps({"containers": [container]}),
    }  # fmt: skip
    return Pod.objects.update_or_create(cluster=job.cluster, namespace="default", name=name, defaults=known | fields)[0]


def recorded(name):
    return (LOGS / f"{name}.log").read_bytes()


def diagnosed(job, number=1, after_s=1):
    ran = diagnosing.run(job.uid, number, timezone.now() + timedelta(seconds=after_s))
    return ran, Attempt.objects.get(job=job, number=number)


def test_the_message_of_the_failing_rank_is_the_reason_of_the_job(llama, logs):
    pod(llama, "llama-worker-0", **FAILED)
    logs.texts["llama-worker-0"] = recorded("value_error_of_one_rank")
    books.report("llama", "Failed")
    ran, attempt = diagnosed(llama)
    assert ran and attempt.cause == "CodeError"
    said = attempt.diagnosis
    assert (said["category"], said["symptom"], said["rank"], said["where"]) == (
        "code",
        "Exception",
        1,
        "train.py:163 in main",
    )
    assert (said["pod"], said["node"], said["exit_code"]) == ("llama-worker-0", "node", 1)
    reason = books.job("llama").reason
    assert reason["message"].startswith("code: ValueError: Expected input batch_size (4096)")
    event = Event.objects.get(reason="Diagnosed")
    assert "rank 1" in event.message and "llama-worker-0 on node" in event.message


def test_it_reads_each_log_once(llama, logs):
    pod(llama, "llama-worker-0", **FAILED)
    books.report("llama", "Failed")
    assert [diagnosed(llama)[0] for _ in range(3)] == [True, False, False]
    assert logs.reads == ["llama-worker-0"]


def test_a_worker_that_was_paused_while_it_read_adds_nothing_to_what_another_one_found(llama, logs, monkeypatch):
    pod(llama, "llama-worker-0", **FAILED)
    logs.texts["llama-worker-0"] = recorded("value_error_of_one_rank")
    books.report("llama", "Failed")
    read = diagnosing._read

    def read_late(*args, **options):
        monkeypatch.setattr(diagnosing, "_read", read)
        assert diagnosed(llama, after_s=60)[0]
        return read(*args, **options)

    monkeypatch.setattr(diagnosing, "_read", read_late)
    diagnosed(llama)
    assert books.job("llama").reason["message"].count("ValueError: Expected input") == 1
    assert Event.objects.get(reason="Diagnosed").count == 1


def test_it_reads_the_pods_that_ended_first_and_believes_the_one_that_raised(llama, logs):
    for number, name in enumerate(("llama-master-0", "llama-worker-0", "llama-worker-1")):
        pod(llama, name, ended_at=f"2026-11-20T10:00:0{3 - number}Z", **FAILED)
        logs.texts[name] = recorded("nccl_timeout")
    logs.texts["llama-worker-0"] = recorded("import_error")
    books.report("llama", "Failed")
    _, attempt = diagnosed(llama)
    assert logs.reads == ["llama-worker-1", "llama-worker-0", "llama-master-0"]
    assert attempt.diagnosis["message"] == "ModuleNotFoundError: No module named 'flash_attn'"
    assert attempt.diagnosis["pod"] == "llama-worker-0"


def test_it_reads_what_a_container_printed_before_it_restarted(llama, logs):
    pod(
        llama,
        "llama-worker-0",
        restarts=3,
        state="lastState",
        exit_code=1,
        reason="CrashLoopBackOff",
        running_since=None,
    )
    logs.formers["llama-worker-0"] = recorded("import_error")
    books.report("llama", "Failed")
    _, attempt = diagnosed(llama)
    assert logs.reads == ["llama-worker-0 before"] and "flash_attn" in attempt.diagnosis["message"]


def test_an_exception_of_the_program_does_not_send_it_to_another_cluster(llama, logs):
    books.tolerating("llama", seconds=30)
    pod(llama, "llama-worker-0", **FAILED)
    logs.texts["llama-worker-0"] = recorded("import_error")
    books.report("llama", "Failed")
    diagnosed(llama)
    health.check(timezone.now() + timedelta(seconds=31))
    assert books.job("llama").state == "Moving"
    books.gone("llama")
    books.cycle(timezone.now() + timedelta(seconds=32))
    again = books.job("llama")
    assert (again.attempt, again.cluster.name) == (2, llama.cluster.name)


@pytest.mark.parametrize(
    ("log", "cause", "kind"),
    [
        ("file_not_found", "DataError", "data"),
        ("cuda_out_of_memory", "OutOfMemory", "code"),
        ("nccl_timeout", "Unknown", "unknown"),
        ("torchrun_sigterm", "CodeError", "preemption"),
        ("torchrun_exit_code_only", "CodeError", "code"),
        ("xid_79", "Unknown", "infrastructure"),
        ("infiniband_completion", "Unknown", "infrastructure"),
        ("nothing", "CodeError", "code"),
    ],
)
def test_a_log_makes_the_cause_more_exact(llama, logs, log, cause, kind):
    pod(llama, "llama-worker-0", **FAILED)
    logs.texts["llama-worker-0"] = recorded(log)
    books.report("llama", "Failed")
    _, attempt = diagnosed(llama)
    assert (attempt.cause, attempt.diagnosis["category"]) == (cause, kind)
    assert books.job("llama").reason["cause"] == cause


def test_lack_of_memory_is_said(llama):
    pod(llama, "llama-worker-0", phase="Failed", reason="OOMKilled", exit_code=137)
    books.report("llama", "Failed")
    _, attempt = diagnosed(llama)
    assert attempt.diagnosis["summary"] == "code: ran out of memory: llama-worker-0: OOMKilled, exit code 137 (SIGKILL)"


def test_a_fault_of_hardware_restarts_the_job_at_once_without_a_larger_budget(llama, logs):
    books.tolerating("llama", seconds=600)
    pod(llama, "llama-worker-0", **FAILED)
    logs.texts["llama-worker-0"] = recorded("xid_79")
    books.report("llama", "Failed")
    assert books.job("llama").state == "Backoff"
    _, attempt = diagnosed(llama)
    job = books.job("llama")
    assert job.state == "Moving" and "Xid (PCI:0000:3b:00): 79" in attempt.message
    assert (attempt.outcome, attempt.cause) == ("Failed", "Unknown")


def test_a_lost_node_restarts_the_job_at_once(llama):
    books.tolerating("llama", seconds=600)
    llama.cluster.nodes.update(ready=False)
    pod(llama, "llama-worker-0", **FAILED)
    books.report("llama", "Failed")
    assert "moves at once" in books.job("llama").reason["message"]
    assert health.check(timezone.now() + timedelta(seconds=1)) == 1
    assert books.job("llama").state == "Moving"


def test_what_a_log_says_of_hardware_does_not_overrule_what_the_pods_show(llama, logs):
    pod(llama, "llama-worker-0", phase="Failed", reason="OOMKilled", exit_code=137)
    logs.texts["llama-worker-0"] = recorded("xid_79")
    books.report("llama", "Failed")
    _, attempt = diagnosed(llama)
    assert (attempt.cause, attempt.diagnosis["category"]) == ("OutOfMemory", "code")


def test_a_job_that_succeeds_is_not_touched_by_what_its_log_says(llama, logs):
    pod(llama, "llama-worker-0", **FAILED)
    books.tolerating("llama", seconds=600)
    logs.texts["llama-worker-0"] = recorded("xid_79")
    books.report("llama", "Failed")
    Attempt.objects.update(**Attempt.NO_FAILURE)  # as a success that is reported meanwhile leaves it
    Attempt.objects.update(log_due_at=timezone.now())
    ran, attempt = diagnosed(llama)
    assert ran and attempt.diagnosis is None and attempt.log_due_at is None
    assert books.job("llama").state == "Backoff" and not Event.objects.filter(reason="Diagnosed").exists()


def test_a_member_that_does_not_answer_is_asked_again_and_then_the_pods_have_to_do(llama, members):
    llama.cluster.access = {**llama.cluster.access, "server": "https://127.0.0.1:1"}
    llama.cluster.save()
    pod(llama, "llama-worker-0", message="ValueError: bad shape", **FAILED)
    books.report("llama", "Failed")
    ran = [diagnosed(llama, after_s=after)[0] for after in (1, 2, 10, 40, 200)]
    assert ran == [False, False, False, False, True]
    attempt = Attempt.objects.get()
    assert attempt.diagnosis["message"] == "ValueError: bad shape" and attempt.log_due_at is None


def test_an_attempt_whose_task_was_lost_is_found_again(llama, monkeypatch):
    pod(llama, "llama-worker-0", **FAILED)
    books.report("llama", "Failed")
    sent = []
    monkeypatch.setattr("fleet.changes.events.enqueue", lambda *args, **_: sent.append(args))
    diagnosing.request_due(timezone.now() + timedelta(seconds=1))
    assert sent == [("jobs.diagnose", str(llama.uid), 1)]
    diagnosed(llama)
    sent.clear()
    diagnosing.request_due(timezone.now() + timedelta(seconds=1))
    assert sent == []


def test_an_attempt_without_pods_is_diagnosed_by_what_was_kept_of_them(llama):
    pod(llama, "llama-worker-0", **FAILED)
    books.report("llama", "Failed")
    Pod.objects.all().delete()
    _, attempt = diagnosed(llama)
    assert attempt.diagnosis["category"] == "code" and "llama-worker-0" in attempt.diagnosis["message"]


def test_the_exception_is_found_after_a_progress_bar_of_one_endless_line(llama, logs):
    pod(llama, "llama-worker-0", **FAILED)
    progress = b"\r".join(b"%6d/99999 [========>........]" % step for step in range(99999))
    logs.texts["llama-worker-0"] = progress + b"\n" + recorded("value_error_of_one_rank")
    books.report("llama", "Failed")
    _, attempt = diagnosed(llama)
    assert attempt.diagnosis.get("where") == "train.py:163 in main"


@pytest.mark.parametrize("log", [b"x" * 20_000_000, b"step\n" * 2_000_000, b"\xff\xfe" * 100_000, b""])
def test_a_huge_or_broken_log_is_read_within_bounds(llama, logs, log, monkeypatch):
    monkeypatch.setattr(pod_logs, "ANSWER_S", 60.0)  # a busy machine sends 20 MB in more than the 5 s of the product
    pod(llama, "llama-worker-0", **FAILED)
    logs.texts["llama-worker-0"] = log
    client = member_clients.client(llama.cluster)
    assert len(pod_logs.text(client, Pod.objects.get())) <= pod_logs.Bounds().bytes
    books.report("llama", "Failed")
    ran, attempt = diagnosed(llama)
    assert ran and len(json.dumps(attempt.diagnosis)) < 5_000


def test_it_is_shown_with_the_attempt(llama, logs, as_admin):
    pod(llama, "llama-worker-0", **FAILED)
    logs.texts["llama-worker-0"] = recorded("import_error")
    books.report("llama", "Failed")
    url = f"/api/v1/jobs/{llama.uid}/attempts/"
    assert as_admin.get(url).json()["results"][0]["diagnosis"] is None
    diagnosed(llama)
    shown = as_admin.get(url).json()["results"][0]["diagnosis"]
    assert shown["category"] == "code" and shown["excerpt"][-1] == "ModuleNotFoundError: No module named 'flash_attn'"


def test_a_silent_cluster_is_the_reason_of_an_attempt_that_no_pod_explains(llama, logs):
    books.tolerating("llama", seconds=30)
    taints = [{"key": "cluster.karmada.io/unreachable", "effect": "NoExecute", "timeAdded": timezone.now().isoformat()}]
    Cluster.objects.filter(name=llama.cluster.name).update(state=Cluster.State.UNKNOWN, taints=taints)
    health.check(timezone.now() + timedelta(hours=1))
    _, attempt = diagnosed(llama, after_s=3600)
    said = f"infrastructure: {llama.cluster.name} is Unknown and the job's toleration has expired"
    assert (attempt.outcome, attempt.diagnosis["summary"]) == ("Lost", said)
    assert Event.objects.get(reason="Diagnosed").message == f"attempt 1 was lost: {said}"


def test_an_attempt_that_goes_on_has_no_diagnosis(llama, logs):
    books.tolerating("llama", seconds=600)
    pod(llama, "llama-worker-0", **FAILED)
    books.report("llama", "Failed")
    diagnosed(llama)
    health.check(timezone.now() + timedelta(seconds=601))
    assert returns.come_back(books.job("llama"), timezone.now(), succeeded=True)
    attempt = Attempt.objects.get(number=1)
    assert (attempt.cause, attempt.diagnosis, attempt.log_due_at) == ("", None, None)
