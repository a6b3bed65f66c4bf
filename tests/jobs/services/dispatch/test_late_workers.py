"""What a worker saw before it was paused for longer than its claim says nothing any more: another one has looked since."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.kube.resources import PYTORCH_JOBS
from fleet.models import Cluster, Event
from jobs.core.life.works import WorkEvent
from jobs.kinds import registry
from jobs.models import ClaimLocation, Dependent, Job, PreservedState, Work
from jobs.services.dispatch import dispatcher
from jobs.services.lifecycle import volume_claims, works
from tests.jobs.services.claims import claim, job
from tests.support import books
from tests.support.black_hole import swallow
from tests.support.passive import passive_member
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
NOBODY = "https://127.0.0.1:9"
"""Nothing listens there: a connection is refused at once."""
STEP = [{"aliasLabelName": "step", "jsonPath": "{.step}", "env": "STEP"}]


@pytest.fixture
def member(tmp_path):
    with passive_member(tmp_path) as made:
        yield made


def claimed() -> Work:
    Work.objects.update(due_at=timezone.now())
    mine = works.claim(Work.objects.get().pk, timezone.now())
    assert mine is not None
    return mine


def test_it_neither_counts_an_unanswered_request_nor_says_so_on_the_job(member):
    books.apply(pytorch_job("llama"))
    books.cycle()
    late = claimed()
    assert works.advance(late, WorkEvent.BEGUN)
    Work.objects.update(claim="another worker")
    swallow(member.cluster, NOBODY)
    before = [table.objects.values().get() for table in (Work, Job, Cluster)]
    late.cluster.refresh_from_db()
    assert dispatcher._dispatch_one(late, books.job("llama"), timezone.now) == "ClaimLost"
    assert [table.objects.values().get() for table in (Work, Job, Cluster)] == before
    assert not works.give_back(late, timezone.now() + timedelta(hours=1))
    assert Work.objects.values().get() == before[0]


def test_it_keeps_no_older_state_of_a_copy_in_place_of_a_newer_one(member):
    policy = yaml.safe_load(POLICY)
    policy["spec"]["failover"] = {"application": {"statePreservation": {"rules": STEP}}}
    books.apply(yaml.safe_dump(policy), pytorch_job("llama"))
    books.cycle()
    member.work(PYTORCH_JOBS)
    Work.objects.update(state="Withdrawing")
    kind = registry.kind_of("kubeflow.org/v1", "PyTorchJob")
    late = claimed()
    say = dispatcher._success_reporter(late, books.job("llama"), kind, timezone.now)
    say({"status": {"step": "100"}})
    Work.objects.update(claim="")
    newer = dispatcher._success_reporter(claimed(), books.job("llama"), kind, timezone.now)
    newer({"status": {"step": "150"}})
    with pytest.raises(works.ClaimLost):
        say({"status": {"step": "100"}})
    assert PreservedState.objects.get().values["step"]["value"] == "150"


@pytest.mark.parametrize("others", [True, False])
def test_a_claim_that_another_job_has_mounted_meanwhile_keeps_its_place(others):
    north = books.a_cluster()
    books.apply(claim(), job("llama", "ckpt"), *([job("mistral", "ckpt")] if others else []))
    books.cycle()
    now = timezone.now()
    mine = works.claim(Work.objects.get(name="llama").pk, now)
    volume_claims.bind(mine, books.job("llama"), Dependent.objects.all(), now, anywhere=False)
    volume_claims.forget(mine, books.job("llama"), "ckpt", now)
    assert ClaimLocation.objects.filter(cluster=north).exists() == others


def test_it_writes_nothing_of_where_a_volume_claim_is():
    books.a_cluster()
    books.apply(claim(), job("llama", "ckpt"))
    books.cycle()
    late, rows, now = claimed(), Dependent.objects.all(), timezone.now()
    Work.objects.update(claim="another worker")
    with pytest.raises(works.ClaimLost):
        volume_claims.bind(late, books.job("llama"), rows, now, anywhere=False)
    assert not ClaimLocation.objects.exists()
    newer = Work.objects.get()
    volume_claims.bind(newer, books.job("llama"), rows, now, anywhere=False)
    with pytest.raises(works.ClaimLost):
        volume_claims.forget(late, books.job("llama"), "ckpt", now)
    assert ClaimLocation.objects.exists()


def test_nodes_that_were_read_before_another_worker_has_read_them_are_not_written():
    north, now = books.a_cluster(), timezone.now()
    location = ClaimLocation.objects.create(namespace="default", name="ckpt", cluster=north, created_at=now)
    late = ClaimLocation.objects.get()
    ClaimLocation.objects.update(read_due_at=now)
    assert not volume_claims.reached_from(late, [[["zone", "In", ["1"]]]], now)
    assert not volume_claims.missing(late, now)
    location.refresh_from_db()
    assert volume_claims.reached_from(location, [[["zone", "In", ["2"]]]], now)
    assert ClaimLocation.objects.get().node_terms == [[["zone", "In", ["2"]]]]
    assert not Event.objects.filter(type="Warning").exists()
