"""Which reasons a job waited for is kept by the cycles and by what users do, and is in its spans once it has ended."""

from datetime import timedelta

import pytest

from jobs.models import Job, UsageSpan
from jobs.services.lifecycle.accounting import usage_spans
from jobs.services.scheduling import loop
from jobs.services.submission import manifests, submit
from jobs.services.submission.changes import actions
from quotas.services import trees
from tests.quotas.core.builders import NOON, manifest, quota
from tests.support import books
from tests.support.quotas import PLENTY, gpus, leaf
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db


def at(minutes: int):
    return NOON + timedelta(minutes=minutes)


def test_the_spans_of_a_job_say_for_which_reasons_it_waited():
    loop._idle_caches.clear()
    books.a_cluster("north", 8)
    total = {**PLENTY, "nvidia.com/gpu": 8}
    tree = manifest(quota("root", total, total, leaf("a", "default", **gpus(0, 4))))
    trees.save(tree, trees.Saving("system", NOON))
    for minutes, name in ((0, "first"), (1, "next")):
        text = "\n---\n".join((POLICY, pytorch_job(name, workers=0, gpus=4)))
        submit.apply(manifests.parse(text.encode()), by="ada", now=at(minutes))
    books.cycle(at(2))
    books.sent()
    actions.suspend(books.job("next"), by="ada", now=at(10))
    actions.resume(books.job("next"), by="ada", now=at(15))
    books.cycle(at(16))
    books.report("first", "Succeeded", now=at(30))
    books.cycle(at(31))
    assert Job.objects.filter(name="next", state=Job.State.PLACED).exists()
    books.sent()
    books.report("next", "Running", now=at(32))
    books.report("next", "Succeeded", now=at(40))
    usage_spans.settle(at(41))
    waits = UsageSpan.objects.filter(job_uid=books.job("next").uid, number=0).order_by("begin")
    assert [(span.kind, span.reason, span.begin, span.end) for span in waits] == [
        ("queue", "WaitingForScheduler", at(1), at(2)),
        ("quota", "QuotaExceeded", at(2), at(10)),
        ("suspended", "Suspended", at(10), at(15)),
        ("queue", "WaitingForScheduler", at(15), at(16)),
        ("quota", "QuotaExceeded", at(16), at(31)),
    ]
