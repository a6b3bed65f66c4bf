"""What the fleet keeps of a training's own progress, and all it decides by it: whether an exit 0 after a notice is the end."""

import time

import pytest
from django.utils import timezone

from fleet.models import Event
from jobs.models import Job, Notice, Progress, Work
from jobs.runtime import notices as records
from jobs.runtime import progress
from jobs.runtime.notices import JobRecord, PodRecord, Scope
from jobs.services.follow import notices
from jobs.services.follow.status import JobEventHandler
from tests.jobs.services import resizing as elastic
from tests.jobs.services.resizing import runs
from tests.support import books
from tests.support.quotas import apply_tree, gpus, leaf

pytestmark = pytest.mark.django_db
UID = "copy-1"


@pytest.fixture(autouse=True)
def llama():
    books.a_cluster("north", 8)
    apply_tree(leaf("a", **gpus(8, 8)))
    books.apply(elastic.elastic("llama", 3, least=3, queue="a"))
    job = runs("llama")
    Work.objects.filter(job_uid=job.uid).update(object_uid=UID)
    return job


def copy(at_s=0.0, condition="Running", *, uid=UID, notice_s=None, scope=Scope.JOB, left=False, **said):
    """``at_s`` and ``notice_s``: seconds from now, of its report and of a notice to its first pod or to all."""
    made = books.copy("llama", {"conditions": [{"type": condition, "status": "True"}]})
    now = time.time()
    claimed = said.pop("claimed_s", None)
    report = progress.Progress(now + at_s, claimed_at=None if claimed is None else now + claimed, **said)
    made["metadata"]["uid"] = UID
    made["metadata"]["annotations"] = {progress.PROGRESS: report.written(uid)}
    if notice_s is not None:
        at = now + notice_s
        notice = records.Notice("n1-1", "aws-spot", "n1", at, at + 60, scope)
        stopping = {"n1-1": JobRecord(notice, {"llama-worker-0": PodRecord("u", at + 1, at + 2 if left else None)})}
        made["metadata"]["annotations"][records.NOTICES] = records.written(stopping, UID)
    return made


def report(*copies):
    for each in copies:
        JobEventHandler().on_update(books.job("llama").cluster_id, books.resource("llama"), [each], timezone.now())


def test_it_keeps_the_latest_report_and_announces_none():
    before = books.job("llama").resource_version
    report(
        copy(-9, step=10, total=100, loss=3.5, eta_s=60, world_size=3),
        copy(-4, step=20, total=100, saved_step=20),
        copy(-9, step=10),
    )
    row = Progress.objects.get()
    assert (row.attempt, row.step, row.total, row.saved_step) == (1, 20, 100, 20)
    assert books.job("llama").resource_version == before


def test_a_later_attempt_reports_although_the_clock_of_the_former_was_ahead():
    report(copy(9999, step=10))
    Progress.objects.update(attempt=7)
    report(copy(step=3))
    row = Progress.objects.get()
    assert (row.attempt, row.step) == (1, 3)


def test_it_believes_no_report_that_came_with_a_manifest():
    report(copy(step=10, total=10, uid="another"))
    assert not Progress.objects.exists()


def test_a_batch_without_reports_asks_for_none(django_assert_num_queries):
    plain = books.copy("llama", {"conditions": [{"type": "Running", "status": "True"}]})
    plain["metadata"]["uid"] = UID
    report(plain)
    with pytest.MonkeyPatch.context() as patched:
        patched.delattr(Progress, "objects")
        report(plain)


def test_a_notice_keeps_the_first_checkpoint_that_the_job_reports_after_it():
    saved = []
    for at_s, step in ((-60, 30), (-5, 41), (-1, 50)):
        report(copy(at_s, step=step, saved_step=step, notice_s=-10))
        saved.append(Notice.objects.get().saved_step)
    assert saved == [None, 41, 41]


def test_a_checkpoint_from_before_a_notice_is_no_answer_to_it_although_a_report_repeats_it():
    saved = []
    report(copy(-3600, step=30, saved_step=30))
    for at_s, step in ((-5, 30), (-3, 30), (-1, 41)):
        report(copy(at_s, step=step, saved_step=step, notice_s=-10))
        saved.append(Notice.objects.get().saved_step)
    assert saved == [None, None, 41]


def test_an_exit_0_after_a_notice_is_a_stop_although_transformers_reports_100_percent():
    report(copy(step=64, total=3000, percent=2, notice_s=-10))
    report(copy(step=64, total=3000, percent=100, claimed_s=-1, condition="Succeeded", notice_s=-10))
    notices.settle(timezone.now())
    assert books.job("llama").state == Job.State.RECLAIMING
    said = Event.objects.get(reason="StoppedByNotice").message
    assert "step 64 of 3000" in said


def test_an_exit_0_after_a_notice_says_why_it_is_a_stop_where_nothing_was_reported():
    ended = copy(condition="Succeeded", notice_s=-10)
    del ended["metadata"]["annotations"][progress.PROGRESS]
    report(ended, ended)
    assert "no progress" in Event.objects.get(reason="StoppedByNotice").message


@pytest.mark.parametrize(
    "said", [{"step": 3000, "total": 3000}, {"percent": 100, "claimed_s": -60}], ids=["all-steps", "claimed-before"]
)
def test_the_end_of_a_training_is_its_success_also_after_a_notice(said):
    report(copy(condition="Succeeded", notice_s=-10, **said))
    notices.settle(timezone.now())
    assert books.job("llama").state == Job.State.SUCCEEDED


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ({"step": 500, "total": 100_000}, Job.State.RECLAIMING),
        ({"step": 500, "total": 100_000, "percent": 100, "claimed_s": -1}, Job.State.RECLAIMING),
        ({"step": 3000, "total": 3000}, Job.State.SUCCEEDED),
        ({"step": 500, "percent": 40}, Job.State.SUCCEEDED),
    ],
    ids=["midway", "midway-claimed-after", "all-steps", "no-total"],
)
def test_an_exit_0_after_a_notice_to_some_pods_is_a_stop_where_its_steps_say_so(said, state):
    """The pod that left takes the others with it: all leave after the same step."""
    report(copy(condition="Succeeded", notice_s=-10, scope=Scope.PODS, **said))
    notices.settle(timezone.now())
    assert books.job("llama").state == state


@pytest.mark.parametrize("condition", ["Succeeded", "Failed"])
def test_a_stop_counts_also_when_what_followed_from_its_notice_was_settled_before(condition):
    about = {"notice_s": -50, "scope": Scope.PODS, "left": True, "step": 500, "total": 100_000}
    report(copy(-20, **about))
    notices.settle(timezone.now())
    assert not notices.unsettled().exists(), "another pod is in its place"
    report(copy(condition=condition, **about))
    notices.settle(timezone.now())
    assert books.job("llama").state == Job.State.RECLAIMING


def test_a_failure_after_a_notice_is_its_answer_whatever_was_reported():
    report(copy(step=3000, total=3000, condition="Failed", notice_s=-10))
    notices.settle(timezone.now())
    assert books.job("llama").state == Job.State.RECLAIMING


def test_the_last_report_counts_also_when_the_copy_is_deleted_with_it():
    report(copy(-5, step=2900, total=3000, notice_s=-10))
    last = copy(-1, step=3000, total=3000, condition="Succeeded", notice_s=-10)
    JobEventHandler().on_delete(books.job("llama").cluster_id, books.resource("llama"), [last], timezone.now())
    assert books.job("llama").state == Job.State.SUCCEEDED and Progress.objects.get().step == 3000


def test_it_goes_with_its_job():
    report(copy(step=1))
    books.job("llama").delete()
    assert not Progress.objects.exists()
