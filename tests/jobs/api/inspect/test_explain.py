"""Why a job is where it is, over REST: cluster by cluster, with what would let it start."""

from dataclasses import replace

import pytest
from django.utils import timezone

from fleet.models import Cluster, Hold, Pod
from jobs.models import Binding
from jobs.services.inspect import explaining
from jobs.services.scheduling import loop
from tests.jobs.api.explaining import explained, submitted
from tests.support.books import a_cluster

pytestmark = pytest.mark.django_db


def test_it_tells_what_is_short_and_what_would_mend_it(as_admin):
    a_cluster("north", gpus=4)
    job = submitted("llama", gpus=4)
    loop.run(timezone.now)
    told = explained(as_admin, job)
    assert (told["outcome"], told["never_fits"], told["reason"]["code"]) == ("Waits", True, "NoClusterFits")
    [north] = told["clusters"]
    assert (north["fits"], north["cause"], north["missing"]) == (False, "Short", {"nvidia.com/gpu": 8})
    assert told["changes"][0]["kind"] == "AddNodes" and told["changes"][0]["count"] == 2


def test_it_tells_who_holds_what_is_short(as_admin):
    north = a_cluster("north", gpus=8)
    other, job = submitted("whisper"), submitted("llama", gpus=2)
    fields = {"cluster": north, "attempt": 1, "pods": 3, "made_at": timezone.now()}
    Hold.objects.create(job_uid=other.uid, amounts={"nvidia.com/gpu": 4, "pods": 3}, **fields)
    [told] = explained(as_admin, job)["clusters"]
    assert told["missing"] == {"nvidia.com/gpu": 2}
    assert [(each["job"], each["amounts"]["nvidia.com/gpu"]) for each in told["holds"]] == [("default/whisper", 4)]


def test_it_waits_for_the_job_whose_end_suffices(as_admin):
    north = a_cluster("north", gpus=3)
    runs, job = submitted("whisper", workers=0, gpus=2), submitted("llama", workers=0, gpus=3)
    north.nodes.update(requested={"nvidia.com/gpu": 2, "pods": 1})
    node = north.nodes.get().name
    fields = {"cluster": north, "namespace": "default", "uid": "1", "attempt": 1, "created_at": timezone.now()}
    Pod.objects.create(name="p", job_uid=runs.uid, role="master", node=node, phase="Running", **fields)
    [change] = explained(as_admin, job)["changes"]
    assert (change["kind"], change["jobs"]) == ("WaitForJobs", ["default/whisper"])


def test_it_fits_a_cluster_by_its_sum_where_the_label_says_so(as_admin):
    north = a_cluster("north", gpus=2)
    offered = north.nodes.get().allocatable
    north.nodes.create(name="other", ready=True, allocatable=offered)
    job = submitted("llama", workers=0, gpus=4)
    assert explained(as_admin, job)["clusters"][0]["cause"] == "NodeTooSmall"
    Cluster.objects.update(labels={"convoy.dev/fit": "Aggregate"})
    small = submitted("small", workers=1, gpus=2)
    assert explained(as_admin, small)["clusters"][0]["fits"]


def test_it_tells_what_was_decided_of_a_job_that_has_its_place(as_admin):
    a_cluster("north", gpus=8)
    a_cluster("small", gpus=1)
    job = submitted("llama")
    loop.run(timezone.now)
    told = explained(as_admin, job)
    assert (told["outcome"], told["cluster"]) == ("Placed", "north")
    assert [(each["cluster"], each["chosen"]) for each in told["clusters"]] == [("north", True), ("small", False)]
    assert told["at"] == Binding.objects.get().scheduled_at.isoformat().replace("+00:00", "Z")


def test_it_keeps_the_score_by_part_and_what_stood_in_the_way_with_the_decision(as_admin):
    a_cluster("north", gpus=8)
    a_cluster("small", gpus=1)
    job = submitted("llama")
    before = explained(as_admin, job)["clusters"]
    loop.run(timezone.now)
    kept = ("cause", "role", "nodes", "never", "parts", "short", "score")
    north, small = before
    told = explained(as_admin, job)["clusters"]
    assert told[0]["score_parts"] == north["score_parts"] and north["score_parts"]
    assert [told[1][name] for name in kept] == [small[name] for name in kept] and small["cause"] == "Short"


def test_it_tells_for_whom_nodes_are_kept_and_until_when(as_admin, settings):
    settings.CONVOY_CYCLE = replace(settings.CONVOY_CYCLE, reservation_patience_s=0)
    a_cluster("north", gpus=8)
    submitted("whisper", workers=0, gpus=6)
    loop.run(timezone.now)
    submitted("big", workers=0, gpus=8)
    [told] = explained(as_admin, job := submitted("llama", workers=0, gpus=1, duration="9h"))["clusters"]
    assert (told["code"], told["cause"], told["holds"][0]["job"]) == ("KeptForGang", "Kept", "default/big")
    assert (
        "keeps 1 node for a gang that comes first until it starts, expected at " in told["message"]
        and told["holds"][0]["until"]
    )
    loop.run(timezone.now)
    job.refresh_from_db()
    assert [each["code"] for each in job.reason["clusters"]] == ["KeptForGang"]


def test_it_tells_a_job_that_fits_that_only_its_turn_is_missing(as_admin):
    a_cluster("north", gpus=8)
    told = explained(as_admin, submitted("llama"))
    assert told["outcome"] == "Fits" and told["clusters"][0]["score_parts"] and "it fits on north" in told["message"]


def test_it_shows_nothing_of_other_namespaces(as_viewer):
    job = submitted("llama")
    assert as_viewer.get(f"/api/v1/jobs/{job.uid}/explain/").status_code == 404


def test_it_reads_demands_of_every_role():
    demand = explaining.demand_of(submitted("llama", gpus=2))
    assert [(part.role, part.replicas, dict(part.ask.request)["nvidia.com/gpu"]) for part in demand.parts] == [
        ("master", 1, 2),
        ("worker", 2, 2),
    ]
