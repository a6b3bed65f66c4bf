"""A changed queue label of a job counts at once while it waits, and while it runs when it waits again; the answer says so."""

import pytest
import yaml
from django.utils import timezone

from jobs.models import Work
from jobs.services.lifecycle.accounting import charges
from jobs.services.submission import submit
from jobs.services.submission.changes import actions
from tests.support import books
from tests.support.quotas import apply_tree, gpus, leaf
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db
LABEL = "quota.scheduling.alibabacloud.com/name"


def job(queue: str) -> dict:
    body = yaml.safe_load(pytorch_job("llama"))
    body["metadata"]["labels"] = {LABEL: queue}
    return body


def apply(queue: str) -> list[str]:
    [applied] = submit.apply([job(queue)], by="ada", now=timezone.now())
    return applied.warnings


@pytest.fixture
def queues():
    books.a_cluster()
    apply_tree(leaf("vision", **gpus(0, 8)), leaf("open", **gpus(0, 8)))
    books.apply(POLICY, yaml.safe_dump(job("vision")))


def test_a_waiting_job_is_in_the_other_queue_at_once(queues):
    assert apply("open") == [] and books.job("llama").leaf == "root/open"


def test_a_running_job_keeps_its_queue_says_so_and_is_in_the_other_one_when_it_waits_again(queues):
    books.cycle()
    assert apply("open") == ["it keeps its place in root/vision while it runs; root/open counts when it waits again"]
    assert books.job("llama").leaf == "root/vision"
    actions.suspend(books.job("llama"), by="ada", now=timezone.now())
    Work.objects.update(state=Work.State.GONE)
    charges.release(timezone.now())
    assert (books.job("llama").charge, books.job("llama").leaf) == (None, "root/open")
