"""What the fleet makes of notices in its members: the size that is left, another place in the queue, and no false ends."""

from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import yaml
from django.db.models import F
from django.utils import timezone
from prometheus_client import REGISTRY

from fleet.models import Event, Pod
from jobs.core.resizing.elastic import ELASTIC
from jobs.models import Attempt, Job, Notice, Work
from jobs.runtime import notices as records
from jobs.runtime.notices import JobRecord, PodRecord, Scope
from jobs.services.follow import notices, sweep
from jobs.services.follow.status import JobEventHandler
from jobs.services.lifecycle import works
from jobs.services.scheduling import loop
from tests.jobs.services import resizing as elastic
from tests.jobs.services.resizing import runs, size, sizes_agree
from tests.support import books
from tests.support.books import GPU
from tests.support.quotas import apply_tree, gpus, leaf

pytestmark = pytest.mark.django_db
UID = "copy-1"


@pytest.fixture(autouse=True)
def llama():
    """Three workers run, of which two are needed."""
    books.a_cluster("north", 8)
    apply_tree(leaf("a", **gpus(8, 8)))
    books.apply(elastic.elastic("llama", 3, least=2, queue="a"))
    job = runs("llama")
    Work.objects.filter(job_uid=job.uid).update(object_uid=UID)
    return job


def record(scope, pods=("llama-worker-2",), *, heard=True, left=True, stopped=False, ago_s=20.0, notice_s=60.0):
    at = timezone.now().timestamp() - ago_s
    entry = PodRecord("u", at + 1 if heard else None, at + 5 if left else None, 40)
    notice = records.Notice("n1-1", "aws-spot", "n1", at, at + notice_s, scope)
    return {"n1-1": JobRecord(notice, dict.fromkeys(pods, entry), at + 6 if stopped else None)}


def report(record, condition="Running", *, uid=UID, now=None):
    copy = books.copy("llama", {"conditions": [{"type": condition, "status": "True"}]})
    copy["metadata"]["uid"] = UID
    copy["metadata"]["annotations"] = {records.NOTICES: records.written(record, uid)}
    job = books.job("llama")
    where = job.cluster_id or Work.objects.get(job_uid=job.uid, attempt=job.attempt).cluster_id
    JobEventHandler().on_update(where, books.resource("llama"), [copy], now or timezone.now())


ALL = ("llama-worker-0", "llama-worker-1", "llama-worker-2")


def test_it_keeps_a_row_for_each_pod_and_says_so_once():
    for _ in range(2):
        report(record(Scope.PODS, ALL[:2], left=False))
    assert [(row.pod, row.cause, row.node, row.saved_step) for row in Notice.objects.all()] == [
        ("llama-worker-0", "aws-spot", "n1", 40),
        ("llama-worker-1", "aws-spot", "n1", 40),
    ]
    assert Event.objects.filter(reason="ReclaimNotice").count() == 1


def test_it_believes_no_record_that_came_with_a_manifest():
    report(record(Scope.JOB, ALL, stopped=True), uid="another")
    assert not Notice.objects.exists()
    assert books.job("llama").state == Job.State.RUNNING


def test_it_makes_a_job_smaller_when_nothing_comes_in_the_place_of_what_left():
    Pod.objects.filter(name="llama-worker-2").update(node="", phase="Pending")
    report(record(Scope.PODS))
    notices.settle(timezone.now())
    job = books.job("llama")
    assert (job.state, job.attempt, size("llama"), books.used("root/a")[GPU]) == (Job.State.RUNNING, 1, 2, 2)
    assert job.resize["sizes"] == {"worker": 3} and job.resize["returns_lost"], "it asks for its former size"
    assert Attempt.objects.get().ended_at is None
    sizes_agree()
    notices.settle(timezone.now())
    assert size("llama") == 2, "once"


def test_it_keeps_its_size_where_its_operator_would_end_a_pod_that_runs_for_one_that_left():
    """Of two workers the training operator has those of index 0 and 1: it would end the last one, and start the lost one."""
    Pod.objects.filter(name="llama-worker-1").update(node="", phase="Pending")
    report(record(Scope.PODS, ("llama-worker-1",)))
    notices.settle(timezone.now())
    assert (size("llama"), books.job("llama").resize, books.used("root/a")[GPU]) == (3, None, 3)
    assert "its operator would end the last, which run" in Event.objects.get(reason="NotResized").message
    assert not notices.unsettled().exists()
    sizes_agree()


def loses(job, index):
    """Worker ``index`` has left after its notice, and none comes in its place."""
    now, name = timezone.now(), f"{job.name}-worker-{index}"
    Pod.objects.filter(name=name).update(node="", phase="Pending")
    times = {"at": now - timedelta(seconds=20), "left_at": now - timedelta(seconds=15), "deadline": now}
    Notice.objects.create(job=job, attempt=1, cluster_name="north", notice_id=name, pod=name, scope=Scope.PODS, **times)
    notices.settle(now)
    return size(job.name), books.job(job.name).resize


@pytest.mark.parametrize("annotations", [{}, {ELASTIC: "true"}])
def test_after_several_reclaims_it_asks_for_the_size_that_it_had_before_the_first(annotations):
    books.apply(elastic.elastic("bert", 4, queue="a", annotations=annotations))
    bert = runs("bert")
    for index, left in ((3, 3), (2, 2)):
        now, resize = loses(bert, index)
        assert (now, resize["sizes"]) == (left, {"worker": 4})
        Work.objects.filter(job_uid=bert.uid).update(resize_done=F("resize_wanted"))


@pytest.mark.parametrize("node", ["", "node"])
def test_it_keeps_the_size_of_a_ray_job_whose_operator_would_end_any_pod(node):
    """KubeRay takes surplus pods from the front of its list, pending or not, and its pods have no index."""
    body = yaml.safe_load(Path("docs/examples/rayjob.yaml").read_text())
    books.apply(yaml.safe_dump({**body, "metadata": {"name": "tune", "labels": {elastic.LEAF: "a"}}}))
    north, now = books.job("llama").cluster, timezone.now()
    Job.objects.filter(name="tune").update(state=Job.State.RUNNING, attempt=1, cluster=north)
    tune = books.job("tune")
    for name, place in (("tune-gpus-x", "node"), ("tune-gpus-y", node)):
        Pod.objects.create(
            cluster=north, namespace="default", name=name, uid=name, job_uid=tune.uid, attempt=1, role="gpus", index=0,
            node=place, phase="Running" if place else "Pending", created_at=now,
        )  # fmt: skip
    times = {"at": now - timedelta(seconds=20), "left_at": now - timedelta(seconds=15), "deadline": now}
    Notice.objects.create(job=tune, attempt=1, cluster_name="north", notice_id="n", pod="w", scope=Scope.PODS, **times)
    notices.settle(now)
    roles = {role["name"]: role["replicas"] for role in books.job("tune").roles}
    assert (roles["gpus"], books.job("tune").resize) == (2, None)
    kept = Event.objects.filter(reason="NotResized").values_list("message", flat=True)
    assert ["would end any" in message for message in kept] == ([] if node else [True])
    assert not notices.unsettled().exists()


def test_it_waits_a_little_for_pods_in_the_place_of_those_that_left():
    now = timezone.now()
    Pod.objects.filter(name="llama-worker-2").update(node="", phase="Pending")
    report(record(Scope.PODS, ago_s=6), now=now)
    notices.settle(now + timedelta(seconds=1))
    assert size("llama") == 3
    Pod.objects.filter(name="llama-worker-2").update(node="node", phase="Running")
    notices.settle(now + timedelta(minutes=1))
    assert size("llama") == 3 and books.job("llama").resize is None
    assert not notices.unsettled().exists()


def test_it_shrinks_also_where_the_sweep_began_before_a_pod_left():
    """A sweep keeps the time of its beginning, and processes differ by seconds."""
    now = timezone.now()
    report(record(Scope.PODS, ago_s=0), now=now)
    notices.settle(now - timedelta(seconds=2))
    assert notices.unsettled().exists()
    Pod.objects.filter(name="llama-worker-2").update(node="", phase="Pending")
    notices.settle(now + timedelta(seconds=30))
    assert size("llama") == 2 and not notices.unsettled().exists()


@pytest.mark.parametrize("ahead", ["member", "fleet"])
def test_it_waits_no_hour_for_pods_in_the_place_of_those_that_left_by_a_clock_that_is_ahead(ahead):
    Pod.objects.filter(name="llama-worker-2").update(node="", phase="Pending")
    now, hour = timezone.now(), timedelta(hours=1)
    if ahead == "member":
        report(record(Scope.PODS, ago_s=-3600), now=now)
        notices.settle(now + timedelta(seconds=5))
        assert size("llama") == 3
    else:
        report(record(Scope.PODS, ago_s=-3600), now=now + hour)
    notices.settle(now + timedelta(seconds=11))
    assert size("llama") == 2


@pytest.mark.parametrize("ahead_s", [3, 3600])
def test_an_end_is_the_answer_to_a_notice_though_the_clock_of_the_member_is_ahead(ahead_s):
    report(record(Scope.PODS, ago_s=-ahead_s), "Failed")
    assert books.job("llama").state == Job.State.RUNNING
    notices.settle(timezone.now())
    assert books.job("llama").state == Job.State.RECLAIMING


def test_it_lets_a_sweep_do_what_a_lost_hint_did_not():
    Pod.objects.filter(name="llama-worker-2").update(node="", phase="Pending")
    report(record(Scope.PODS))
    sweep.run(timezone.now())
    assert size("llama") == 2


def stopped(condition="Suspended", **about):
    report(record(Scope.JOB, ALL, stopped=condition == "Suspended", **about), condition)
    notices.settle(timezone.now())


def pods_are_gone():
    Pod.objects.all().delete()
    books.gone("llama")
    loop.advance_evictions(timezone.now())


@pytest.mark.parametrize("condition", ["Suspended", "Succeeded", "Failed"])
def test_it_queues_a_job_again_that_was_stopped_as_a_whole_however_it_ended(condition):
    stopped(condition)
    assert books.job("llama").state == Job.State.RECLAIMING
    assert books.used("root/a")[GPU] == 3, "its pods may still run"
    pods_are_gone()
    job, attempt = books.job("llama"), Attempt.objects.get()
    assert (job.state, books.used("root/a").get(GPU, 0)) == (Job.State.QUEUED, 0)
    assert (attempt.outcome, attempt.cause) == ("Reclaimed", "")
    assert "n1 on north was reclaimed (aws-spot)" in job.reason["message"]
    books.cycle(timezone.now() + timedelta(minutes=5))
    assert (books.job("llama").state, books.job("llama").attempt) == (Job.State.PLACED, 2)


def test_it_takes_no_late_word_of_a_stopped_copy_for_the_jobs_success():
    stopped("Suspended")
    report(record(Scope.JOB, ALL, stopped=True), "Succeeded")
    assert books.job("llama").state == Job.State.RECLAIMING
    pods_are_gone()
    books.cycle(timezone.now() + timedelta(minutes=5))
    copy = books.copy("llama", {"conditions": [{"type": "Succeeded", "status": "True"}]})
    copy["metadata"]["labels"]["convoy.dev/attempt"] = "1"
    JobEventHandler().on_delete(books.job("llama").cluster_id, books.resource("llama"), [copy], timezone.now())
    assert books.job("llama").state == Job.State.PLACED


def sample(name, **labels):
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_metrics_count_notices_heard_or_saved_and_how_long_the_next_attempt_took(django_capture_on_commit_callbacks):
    saved, restarts = "convoy_notice_to_saved_seconds_count", "convoy_restart_seconds_count"
    notices_heard = partial(sample, "convoy_notices_total", cause="aws-spot", outcome="heard")
    before = notices_heard(), sample(saved), sample(restarts, cause="Reclaimed")
    with django_capture_on_commit_callbacks(execute=True):
        report(record(Scope.JOB, ALL, heard=False, stopped=True), "Suspended")
        notices.settle(timezone.now())
        pods_are_gone()
        books.cycle(timezone.now() + timedelta(minutes=5))
    assert notices_heard() == before[0] + 3, "SIGTERM is not answered: who saved a step has heard it"
    assert sample(saved) == before[1] + 3
    with django_capture_on_commit_callbacks(execute=True):
        works.start_attempts([books.job("llama")], timezone.now() + timedelta(minutes=6))
        works.start_attempts([books.job("llama")], timezone.now() + timedelta(minutes=7))
    assert sample(restarts, cause="Reclaimed") == before[2] + 1
    assert sample("convoy_restart_seconds_sum", cause="Reclaimed") >= 300


def test_it_uses_no_budget_of_attempts():
    for _ in range(6):
        stopped("Failed")
        pods_are_gone()
        books.cycle(timezone.now() + timedelta(minutes=5))
        books.sent()
        books.report("llama", "Running")
        Work.objects.filter(job_uid=books.job("llama").uid).update(object_uid=UID)
    assert (books.job("llama").state, books.job("llama").attempt) == (Job.State.RUNNING, 7)


@pytest.mark.parametrize("behind_s", [180, 3600, 86_400 * 400])
def test_an_end_is_the_answer_to_a_notice_though_the_clock_of_the_member_is_behind(behind_s):
    asked = record(Scope.JOB, ALL, left=False, ago_s=behind_s + 20.0, notice_s=60.0)
    report(asked)
    later = timezone.now() + timedelta(seconds=60)
    report(asked, "Succeeded", now=later)
    assert books.job("llama").state != Job.State.SUCCEEDED


def test_it_believes_a_success_long_after_a_notice_of_a_member_whose_clock_is_behind():
    asked = record(Scope.PODS, left=False, ago_s=3600.0, notice_s=60.0)
    report(asked)
    report(asked, "Succeeded", now=timezone.now() + timedelta(seconds=200))
    assert books.job("llama").state == Job.State.SUCCEEDED


def test_a_failure_is_no_answer_to_a_notice_that_was_over_long_before_the_fleet_heard_of_it():
    asked = record(Scope.PODS, ago_s=3 * 3600.0, notice_s=1200.0)
    report(asked)
    report(asked, "Failed", now=timezone.now() + timedelta(minutes=10))
    assert Attempt.objects.get().outcome == "Failed" and books.job("llama").state == Job.State.FAILED


def test_it_believes_a_success_long_after_a_notice():
    report(record(Scope.PODS, ago_s=3600))
    books.report("llama", "Succeeded")
    assert books.job("llama").state == Job.State.SUCCEEDED


def test_it_believes_the_success_of_the_others_where_only_some_pods_were_told():
    report(record(Scope.PODS), "Succeeded")
    assert books.job("llama").state == Job.State.SUCCEEDED


def test_it_takes_a_failure_by_the_exit_of_told_pods_for_no_failure():
    report(record(Scope.PODS), "Failed")
    notices.settle(timezone.now())
    assert books.job("llama").state == Job.State.RECLAIMING


def test_it_keeps_no_more_rows_than_it_can_bear(monkeypatch):
    monkeypatch.setattr(notices, "MOST", 2)
    report(record(Scope.PODS, ALL, left=False))
    assert Notice.objects.count() == 2


def test_it_does_nothing_to_a_job_that_was_suspended_by_a_person_meanwhile():
    report(record(Scope.PODS))
    Job.objects.update(state=Job.State.SUSPENDED, suspended=True)
    notices.settle(timezone.now())
    assert size("llama") == 3 and not notices.unsettled().exists()
