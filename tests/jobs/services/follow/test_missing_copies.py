"""A copy that its member does not have any more: what follows depends on what the fleet had asked for, and on nothing else."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.core.members import marks
from fleet.models import Cluster, Identity, Pod
from jobs.models import Attempt, Job, Work
from jobs.services.follow import member_copies, status
from jobs.services.follow.status import JobEventHandler
from tests.jobs.services import lost_cluster
from tests.support import books
from tests.support.between import after_each_look_at

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def llama() -> Job:
    return lost_cluster.running()


def is_missing(job: Job, *, on: Cluster | None = None, attempt: int = 1) -> tuple[str, str, str]:
    """After a list of the cluster without the copy: the states of the job and of its work, and the outcome of the attempt."""
    where = on.pk if on else Cluster.objects.get(name="north").pk
    JobEventHandler().on_resync(where, books.resource("llama"), [(job.uid, attempt)], timezone.now())
    return books.job("llama").state, Work.objects.get().state, Attempt.objects.latest("number").outcome


def pods(job: Job, *phases: str, attempt: int = 1) -> None:
    for index, phase in enumerate(phases):
        about = {"uid": f"{attempt}-{index}", "job_uid": job.uid, "attempt": attempt, "role": "worker", "index": index}
        Pod.objects.create(
            cluster=job.cluster, namespace="default", name=f"llama-{attempt}-{index}", phase=phase, node="node",
            created_at=timezone.now(), **about,
        )  # fmt: skip


def test_one_that_was_applied_was_deleted_by_others(llama):
    assert is_missing(llama) == ("Queued", "Withdrawing", "Vanished")


@pytest.mark.parametrize("state", ["Pending", "Sending", "Suspending", "Suspended", "Withdrawing", "Gone", "Kept"])
def test_one_that_need_not_be_there_moves_nobody(llama, state):
    Work.objects.update(state=state)
    assert is_missing(llama) == ("Running", state, "")


def test_a_list_of_another_cluster_says_nothing_of_it(llama):
    assert is_missing(llama, on=books.a_cluster("south")) == ("Running", "Applied", "")


def test_one_of_another_attempt_says_nothing_of_the_current_one(llama):
    Job.objects.update(attempt=2)
    assert is_missing(llama)[:2] == ("Running", "Applied")


def test_one_whose_failure_is_known_waits_on_for_its_toleration(llama):
    Job.objects.update(state="Backoff", unhealthy_since=timezone.now())
    assert is_missing(llama) == ("Backoff", "Withdrawing", "")


def test_one_of_a_job_that_has_ended_is_gone_and_that_is_all(llama):
    books.end("llama")
    assert is_missing(llama) == ("Succeeded", "Withdrawing", "Succeeded")


@pytest.mark.parametrize(
    ("phases", "state"),
    [
        (["Succeeded"] * 3, "Succeeded"),
        (["Succeeded"] * 2, "Queued"),
        (["Succeeded", "Succeeded", "Running"], "Queued"),
    ],
)
def test_one_whose_pods_had_all_succeeded_has_ended(llama, phases, state):
    pods(llama, *phases)
    assert is_missing(llama)[0] == state


def test_pods_of_an_earlier_attempt_say_nothing_of_this_one(llama):
    pods(llama, *["Succeeded"] * 3)
    Job.objects.update(attempt=2)
    Work.objects.update(attempt=2)
    Attempt.objects.update(number=2)
    assert is_missing(llama, attempt=2)[0] == "Queued"


def test_the_job_is_locked_before_its_works_are_read(llama):
    """A removal that is just being recorded would look like one by others."""
    with CaptureQueriesContext(
        connection,
    ) as queries:
        status._handle_missing_copy(Cluster.objects.get().pk, (llama.uid, 1), timezone.now())
    tables = [query["sql"].replace('"', "").partition(" FROM ")[2].split(" ")[0] for query in queries]
    tables = [table for table in tables if table in ("jobs_job", "jobs_work")]
    assert tables[0] == "jobs_job"


def test_a_copy_that_is_taken_for_a_stray_one_stays_if_its_work_is_another_one_by_now(llama):
    """It had succeeded before it was suspended, and is kept for its logs."""
    Work.objects.update(state="Suspended")
    copy = books.copy("llama", {})
    copy["metadata"]["labels"][marks.FLEET] = Identity.here()
    about = (
        Cluster.objects.get().pk,
        books.resource("llama"),
        copy,
        llama.uid,
        1,
        timezone.now() + timedelta(seconds=1),
    )
    with after_each_look_at("jobs_work", lambda: Work.objects.update(state="Applied")):
        member_copies.remove(*about)
    assert Work.objects.get().state == "Applied"
    member_copies.remove(*about)
    assert Work.objects.get().state == "Withdrawing"
