"""A policy by which each restart of one pod by its operator is a restart of the whole job, where it ran."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.kube.resources import PYTORCH_JOBS
from jobs.models import Attempt
from jobs.services.follow.timeouts import health
from jobs.services.scheduling import loop
from tests.support import books
from tests.support.passive import passive_member
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
PATH = PYTORCH_JOBS.path("default", "llama")
WHOLE = {"application": {"decisionConditions": {"tolerationSeconds": 0}, "purgeMode": "Directly"}}


def policy() -> str:
    body = yaml.safe_load(POLICY)
    body["metadata"]["annotations"] = {"convoy.dev/cool-offs": "Unknown=0,CodeError=0,OutOfMemory=0"}
    body["spec"]["failover"] = WHOLE
    return yaml.safe_dump(body)


def test_a_pod_that_is_restarted_restarts_the_whole_job_in_its_cluster(tmp_path):
    with passive_member(tmp_path) as north:
        books.apply(policy(), pytorch_job("llama"))
        books.cycle()
        north.work(PYTORCH_JOBS)
        books.report("llama", "Running")
        first = north.client.get(PATH)["metadata"]["uid"]
        books.report("llama", "Restarting")
        assert health.check(timezone.now()) == 1
        loop._idle_caches.clear()
        later = timezone.now() + timedelta(seconds=1)
        assert loop.run(lambda: later) == 1
        north.work(PYTORCH_JOBS)
        copy = north.client.get(PATH)["metadata"]
        assert copy["uid"] != first and copy["labels"]["convoy.dev/attempt"] == "2"
        assert list(Attempt.objects.order_by("number").values_list("cluster_name", "outcome")) == [
            ("north", "Failed"),
            ("north", ""),
        ]
