"""What a training reports of itself, over REST and in kubectl's wide table: the same numbers at both."""

import pytest
from django.utils import timezone

from jobs.kubeapi.kinds import kinds
from jobs.models import Progress
from tests.jobs.api.builders import submitted, url

pytestmark = pytest.mark.django_db


def wide(name: str) -> set[str]:
    """The column of one job: as it is listed, and as it is read alone."""
    served = next(kind for kind in kinds() if kind.name == "PyTorchJob")
    cell = next(column.read for column in served.columns if column.name == "Progress")
    listed = [line for line in served.lines(None, None, {}) if line["metadata"]["name"] == name]
    alone = served.render(served.rows().get(name=name))
    return {str(cell(shown, timezone.now())) for shown in (*listed, alone)}


def test_it_shows_steps_that_tell_the_truth_where_the_percentage_does_not(as_editor):
    job = submitted("llama")
    Progress.objects.create(job=job, attempt=1, step=64, total=3000, percent=100, loss=3.5, reported_at=timezone.now())
    (listed,) = as_editor.get("/api/v1/jobs/").json()["results"]
    assert listed["progress"] == as_editor.get(url(job)).json()["progress"]
    said = {name: listed["progress"][name] for name in ("step", "total", "percent", "loss", "eta_s", "attempt")}
    assert said == {"step": 64, "total": 3000, "percent": 2, "loss": 3.5, "eta_s": None, "attempt": 1}
    assert wide("llama") == {"64/3000 (2%)"}


def test_a_job_that_reports_nothing_has_none(as_editor):
    assert as_editor.get(url(submitted("llama"))).json()["progress"] is None
    assert wide("llama") == {""}
