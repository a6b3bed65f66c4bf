"""A job runs where the data of its volume claims is, or waits and says so, unless its policy or the claim says otherwise."""

import pytest
import yaml
from django.utils import timezone

from fleet.changes import journal
from fleet.errors import InvalidInput
from fleet.kube.resources import PYTORCH_JOBS, VOLUME_CLAIMS
from fleet.models import Cluster
from fleet.services.clusters import clusters
from jobs import snapshot
from jobs.core.division.shares import Share
from jobs.core.failover.rules import Outcome, PurgeMode
from jobs.core.reasons import Code, Reason
from jobs.models import ClaimLocation, Job
from jobs.services.failover import failover
from jobs.services.inspect import explaining
from jobs.services.submission.changes import actions
from tests.jobs.services.claims import claim, job
from tests.support import books
from tests.support.passive import passive_member
from tests.support.world import POLICY

pytestmark = pytest.mark.django_db(transaction=True)
ANYWHERE = {"convoy.dev/data-placement": "Anywhere"}
DEAR = {"convoy.dev/gpu-hour-cost": "9"}
CHEAP = {"convoy.dev/gpu-hour-cost": "1"}


@pytest.fixture
def north(tmp_path):
    with passive_member(tmp_path, "north") as made:
        yield made


@pytest.fixture
def south(tmp_path, north):
    with passive_member(tmp_path, "south") as made:
        favour("north", over="south")
        yield made


def favour(name: str, *, over: str) -> None:
    """By the price of its devices."""
    change(name, labels=CHEAP)
    change(over, labels=DEAR)


def change(name: str, **fields) -> None:
    Cluster.objects.filter(name=name).update(**fields)
    uid = str(Cluster.objects.get(name=name).uid)
    journal.append([journal.Change("Cluster", "", name, uid, journal.Action.MODIFIED)], timezone.now())


def policy(**annotations: str) -> str:
    body = yaml.safe_load(POLICY)
    body["metadata"]["annotations"] = annotations
    return yaml.safe_dump(body)


def go(*members) -> None:
    books.cycle()
    for member in members:
        member.work(PYTORCH_JOBS)


def where(name: str) -> str:
    found = books.job(name)
    return found.cluster.name if found.cluster else ""


def suspend(name: str, *members) -> None:
    actions.suspend(books.job(name), by="test", now=timezone.now())
    go(*members)


def resume(name: str, *members) -> None:
    actions.resume(books.job(name), by="test", now=timezone.now())
    go(*members)


def start_on_north(north, *extra: str) -> None:
    books.apply(*extra, claim(), job("llama", "ckpt"))
    go(north)
    assert where("llama") == "north"
    favour("south", over="north")


def full(name: str) -> None:
    Cluster.objects.get(name=name).nodes.update(requested={"nvidia.com/gpu": 8})


def lose(name: str) -> None:
    change(name, state=Cluster.State.NOT_READY, state_since=timezone.now())


def test_it_goes_back_to_the_cluster_of_its_claim_although_another_scores_better(north, south):
    start_on_north(north)
    suspend("llama", north)
    resume("llama", north, south)
    assert where("llama") == "north" and books.job("llama").state == Job.State.DISPATCHED


def test_a_job_without_a_claim_is_not_bound(north, south):
    start_on_north(north)
    suspend("llama", north)
    books.apply(job("plain"))
    resume("llama", north, south)
    assert (where("llama"), where("plain")) == ("north", "south")


def test_a_second_job_follows_the_claim_and_a_namesake_of_another_claim_does_not(north, south):
    start_on_north(north)
    books.apply(claim("other"), job("second", "ckpt"), job("third", "other"))
    go(north, south)
    assert (where("second"), where("third")) == ("north", "south")


def test_two_jobs_placed_at_once_on_two_clusters_do_not_both_start_with_the_claim(north, south):
    """Neither has been sent when they are placed: the second to be sent goes to the data of the first."""
    books.apply(claim(), job("one", "ckpt", gpus=5), job("two", "ckpt", gpus=5))
    books.cycle()
    assert {where("one"), where("two")} == {"north", "south"}
    north.work(PYTORCH_JOBS)
    books.cycle()
    assert ClaimLocation.objects.count() == 1
    waiting = Job.objects.get(cluster=None)
    at = ClaimLocation.objects.get().cluster.name
    assert waiting.reason_code == Code.NO_CLUSTER_FITS
    assert f"does not have the data of claim default/ckpt, which is on {at}" in waiting.reason["message"]


def test_it_waits_for_a_lost_cluster_that_has_its_data_and_says_so(north, south):
    start_on_north(north)
    lose("north")
    failover.leave(books.job("llama"), Outcome.LOST, Reason(Code.CLUSTER_LOST, "gone"), timezone.now())
    go(south)
    waiting = books.job("llama")
    assert where("llama") == ""
    why = "north is not ready; south does not have the data of claim default/ckpt, which is on north"
    assert why in waiting.reason["message"]
    told = explaining.explain_job(waiting, timezone.now())
    assert {each.cluster: each.code for each in told.clusters} == {"north": "NotReady", "south": "DataElsewhere"}
    assert {change.cluster for change in told.changes} <= {"north"}


@pytest.mark.parametrize("when", ["before", "while it waits"])
def test_its_policy_may_let_it_run_anywhere(north, south, when):
    start_on_north(north, *([policy(**ANYWHERE)] if when == "before" else []))
    lose("north")
    failover.leave(books.job("llama"), Outcome.LOST, Reason(Code.CLUSTER_LOST, "gone"), timezone.now())
    go(south)
    if when == "while it waits":
        assert where("llama") == ""
        books.apply(policy(**ANYWHERE))
        go(south)
    assert where("llama") == "south" and books.job("llama").state == Job.State.DISPATCHED


@pytest.mark.parametrize("when", ["before", "while it waits"])
def test_a_claim_may_be_reached_from_anywhere(north, south, when):
    books.apply(claim(**(ANYWHERE if when == "before" else {})), job("llama", "ckpt"))
    go(north)
    full("north")
    suspend("llama", north)
    lose("north")
    resume("llama", south)
    if when == "while it waits":
        assert where("llama") == ""
        books.apply(claim(**ANYWHERE))
        go(south)
    assert where("llama") == "south"


def test_claims_on_two_clusters_are_both_named(north, south):
    start_on_north(north)
    books.apply(claim("data"), job("other", "data"))
    go(south)
    assert where("other") == "south"
    books.apply(job("both", "ckpt", "data"))
    go(north, south)
    told = books.job("both").reason["message"]
    assert "north does not have the data of claim default/data, which is on south" in told
    assert "south does not have the data of claim default/ckpt, which is on north" in told


def test_it_is_free_again_when_its_claim_was_deleted_with_its_last_job(north, south):
    start_on_north(north, claim(**{"convoy.dev/retention": "Delete"}))
    books.apply(claim(**{"convoy.dev/retention": "Delete"}))
    actions.delete(books.job("llama"), by="test", now=timezone.now())
    go(north)
    assert not ClaimLocation.objects.exists()
    books.apply(job("llama", "ckpt"))
    go(north, south)
    assert where("llama") == "south"


def test_a_waiting_job_is_free_when_the_claim_proves_to_be_gone_from_the_cluster(north, south):
    start_on_north(north)
    north.client.delete(VOLUME_CLAIMS.path("default", "ckpt"))
    gone = Reason(Code.APPLICATION_UNHEALTHY, "failed")
    failover.leave(books.job("llama"), Outcome.LOST, gone, timezone.now(), purge=PurgeMode.DIRECTLY)
    north.work(PYTORCH_JOBS)
    go(south)
    assert where("llama") == "south"


def test_a_waiting_job_is_free_when_the_cluster_of_its_claim_is_detached(north, south):
    start_on_north(north)
    lose("north")
    failover.leave(books.job("llama"), Outcome.LOST, Reason(Code.CLUSTER_LOST, "gone"), timezone.now())
    go(south)
    assert where("llama") == ""
    clusters.detach(Cluster.objects.get(name="north"), by="test", now=timezone.now())
    go(south)
    assert where("llama") == "south"


def test_a_lost_share_of_a_divided_job_is_not_bound_to_the_clusters_of_the_others():
    """It is placed on clusters that have none, and there has its own copy of the claim."""
    standing = [Share(1, "north", 1, 0).as_json()]
    books.apply(claim(), job("llama", "ckpt"))
    one = books.a_cluster("north")
    ClaimLocation.objects.create(namespace="default", name="ckpt", cluster=one, created_at=timezone.now())
    rows = Job.objects.filter(name="llama")
    assert snapshot.load_gangs(rows)[0].data_on == {"north"}
    roles = rows.get().roles
    rows.update(roles=[{**roles[0], "replicas": 2, "divides": 0}], shares=standing, state=Job.State.MOVING)
    [gang] = snapshot.load_gangs(rows)
    assert gang.division is not None and gang.data_on is None


def test_a_data_placement_that_is_not_known_is_refused():
    for text in (policy(**{"convoy.dev/data-placement": "Elsewhere"}), claim(**{"convoy.dev/data-placement": "no"})):
        with pytest.raises(InvalidInput, match="convoy.dev/data-placement must be one of Anywhere, WithData"):
            books.apply(text)
