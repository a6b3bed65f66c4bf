"""What a job's next attempt gets of the state of earlier ones, over REST."""

import pytest

from jobs.models import Job, PreservedState
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
RULES = [{"alias": "ckpt", "json_path": "{.path}"}, {"alias": "step", "json_path": "{.step}"}]


def shown(as_admin) -> list[dict]:
    return as_admin.get(f"/api/v1/jobs/{books.job('llama').uid}/").json()["preserved_state"]


def test_it_shows_the_values_in_the_order_of_the_rules_and_why_one_is_not_kept(as_admin):
    books.a_cluster()
    books.apply(pytorch_job("llama"))
    assert shown(as_admin) == []
    Job.objects.update(preserves_state=True)
    at = "2026-11-23T14:00:00Z"
    values = {"ckpt": {"value": "s3://a", "attempt": 2, "at": at}}
    PreservedState.objects.create(job=books.job("llama"), rules=RULES, values=values, problems={"step": "too long"})
    assert shown(as_admin) == [
        {"name": "ckpt", "value": "s3://a", "attempt": 2, "at": at, "problem": ""},
        {"name": "step", "value": "", "attempt": 0, "at": None, "problem": "too long"},
    ]
