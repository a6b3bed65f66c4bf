"""The worked examples of docs/quotas.md, on the very tree that stands there."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from django.utils import timezone

from jobs.models import Job
from quotas.services import trees
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
DOCUMENT = Path(__file__).parents[4] / "docs" / "quotas.md"


def job(name: str, namespace: str, gpus: int = 1) -> str:
    body = yaml.safe_load(pytorch_job(name, workers=0, gpus=gpus))
    body["metadata"]["namespace"] = namespace
    return yaml.safe_dump(body)


def policy(namespace: str) -> str:
    body = yaml.safe_load(books.POLICY)
    body["metadata"]["namespace"] = namespace
    return yaml.safe_dump(body)


def apply(*texts: str) -> None:
    books.apply(policy("vision"), policy("speech"), *texts)


@pytest.fixture
def tree():
    books.a_cluster(gpus=8)
    found = re.search(r"```yaml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    trees.apply(yaml.safe_load(found[1]), by="system", now=timezone.now())


@pytest.fixture
def borrowed(tree):
    """Seven jobs of vision run; the last one is the most recently started."""
    apply(*(job(f"v{i}", "vision") for i in range(8)))
    books.cycle()
    books.sent()
    for age, name in enumerate(("v6", "v5", "v4", "v3", "v2", "v1", "v0"), start=1):
        started = timezone.now() - timedelta(hours=age)
        Job.objects.filter(name=name).update(state=Job.State.RUNNING, started_at=started)


def code(name: str) -> str:
    return books.job(name).reason["code"]


def test_it_borrows_what_belongs_to_no_min_or_is_lent_and_no_more(borrowed):
    assert books.used("root/vision")["nvidia.com/gpu"] == 7
    assert books.job("v7").state == Job.State.QUEUED and code("v7") == "QuotaExceeded"


def test_it_evicts_the_most_recently_started_job_for_one_within_min(borrowed):
    apply(job("guaranteed", "speech", 2))
    books.cycle()
    leaving = Job.objects.filter(state=Job.State.RECLAIMING)
    assert [row.name for row in leaving] == ["v6"] and code("v6") == "Reclaimed"
    assert books.job("v6").reclaim["by"] == "speech/guaranteed"


def test_it_evicts_nothing_for_a_job_that_would_borrow(borrowed):
    apply(job("large", "speech", 3))
    books.cycle()
    assert not Job.objects.filter(state=Job.State.RECLAIMING).exists() and code("large") == "QuotaExceeded"


def test_it_starts_no_more_jobs_than_the_limit_on_jobs_allows(tree):
    apply(*(job(f"s{i}", "speech") for i in range(4)))
    books.cycle()
    assert books.used("root/speech")["nvidia.com/gpu"] == 3 and code("s3") == "MaxJobsReached"
