"""When waiting jobs may start: nothing is promised to those whom their queue will not let start."""

import pytest
import yaml
from django.utils import timezone

from jobs.services.scheduling.demand import estimates
from quotas.models import Queue
from quotas.services import queues
from tests.support import books
from tests.support.quotas import apply_tree, leaf
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
LABEL = "quota.scheduling.alibabacloud.com/name"


def job(name: str, queue: str) -> str:
    body = yaml.safe_load(pytorch_job(name))
    body["metadata"]["labels"] = {LABEL: queue}
    return yaml.safe_dump(body)


def guessed() -> set[str]:
    found = estimates.starts_now(timezone.now())
    return {key.rpartition("/")[2] for key, estimate in found.items() if estimate}


def test_it_guesses_nothing_of_a_queue_that_admits_nobody():
    apply_tree(leaf("open"), leaf("team", "", leaf("shut")))
    books.apply(job("soon", "open"), job("never", "shut"))
    assert guessed() == {"soon", "never"}
    queues.set_state(Queue.objects.get(path="root/team"), Queue.State.HELD, by="system", now=timezone.now())
    assert guessed() == {"soon"}
