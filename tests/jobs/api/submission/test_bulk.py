"""One action on many jobs: previewed, done for whom it can be done, and refused one by one."""

import uuid

import pytest

from jobs.models import Job
from jobs.services.submission import bulk
from tests.jobs.api.builders import submitted

pytestmark = pytest.mark.django_db


def act(client, action: str, *jobs: Job, **more):
    body = {"action": action, "ids": [str(job.uid) for job in jobs], **more}
    return client.post("/api/v1/jobs/bulk/", body, format="json")


def test_it_suspends_all_it_may_and_tells_why_not_the_rest(as_admin):
    fresh, done = submitted("fresh"), submitted("done")
    Job.objects.filter(pk=done.pk).update(state=Job.State.SUCCEEDED)
    answer = act(as_admin, "suspend", fresh, done, Job(uid=uuid.uuid4())).json()
    assert (answer["done"], answer["refused"]) == (1, 2)
    assert [bool(each["message"]) for each in answer["results"]] == [False, True, True]
    assert Job.objects.get(name="fresh").suspended


def test_it_only_tells_in_a_preview(as_admin):
    job = submitted("a")
    answer = act(as_admin, "delete", job, preview=True).json()
    assert answer["done"] == 1 and answer["results"][0]["gpus"] == 3
    assert Job.objects.get().deleting_at is None


def test_it_deletes(as_admin):
    assert act(as_admin, "delete", submitted("a"), submitted("b")).json()["done"] == 2
    assert not Job.objects.exists()


def test_it_touches_nothing_that_may_not_be_seen(as_editor):
    theirs = submitted("whisper", "speech")
    answer = act(as_editor, "delete", theirs).json()
    assert answer["results"][0]["message"] == "there is no such job any more" and Job.objects.exists()


def test_it_refuses_who_may_nowhere(as_viewer):
    assert act(as_viewer, "delete", submitted("whisper", "speech")).status_code == 403


@pytest.mark.parametrize("ids", [[], ["nonsense"], [str(uuid.uuid4())] * (bulk.MOST + 1)])
def test_it_refuses_what_it_cannot_take(as_admin, ids):
    assert as_admin.post("/api/v1/jobs/bulk/", {"action": "delete", "ids": ids}, format="json").status_code == 422
