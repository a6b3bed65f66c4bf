"""Flavors in rows: what a job is charged and kept to, and what becomes of jobs that run when the table changes."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from django.utils import timezone

from fleet.errors import Conflict, InvalidInput
from fleet.models import Hold, Pod
from jobs import snapshot
from jobs.models import Job, Work
from jobs.services.follow.timeouts import health
from jobs.services.scheduling import loop
from quotas.models import QuotaTree
from quotas.services import trees, usage
from tests.jobs.services.scheduling.flavor_worlds import A100, FLEET, H100, LABEL, REST, TABLE, apply, fleet, job, team
from tests.quotas.core.builders import manifest
from tests.support import books
from tests.support.books import GPU

__all__ = ["fleet"]

pytestmark = pytest.mark.django_db


def charge(name: str) -> dict[str, int]:
    return {key: amount for key, amount in (books.job(name).charge or {}).items() if key.startswith(GPU)}


def test_charge_hold_and_node_selector_are_of_the_flavor_a_job_is_placed_on(fleet):
    apply(FLEET, team())
    books.apply(job("one"))
    books.cycle()
    assert charge("one") == {GPU: 2, H100: 2} and books.job("one").cluster.name == "north"
    work = Work.objects.get()
    assert work.node_labels == {"master": {LABEL: "H100"}, "worker": {LABEL: "H100"}}
    assert books.used("root/a")[H100] == 2 and books.used("root/a")[A100] == 0


def test_jobs_fall_back_to_the_next_flavor_and_then_wait_with_both_named(fleet):
    apply(FLEET, team(h100=4))
    books.apply(*(job(f"j{i}", 4) for i in range(4)))
    books.cycle()
    placed = sorted(tuple(charge(f"j{i}").items()) for i in range(4))
    assert placed == [(), ((GPU, 4), (A100, 4)), ((GPU, 4), (A100, 4)), ((GPU, 4), (H100, 4))]
    waiting = Job.objects.get(state="Queued")
    assert waiting.reason["code"] == "QuotaExceeded"
    assert "h100: asks for 4 nvidia.com/gpu:h100: root/a has max 4 nvidia.com/gpu:h100" in waiting.reason["message"]
    assert "; a100: asks for 4 nvidia.com/gpu:a100: root has max 8 nvidia.com/gpu:a100" in waiting.reason["message"]


def test_a_job_that_fails_over_keeps_its_flavor(fleet):
    apply(FLEET, team())
    third = books.a_cluster("west")
    third.nodes.update(labels={LABEL: "H100"})
    books.apply(job("one"))
    books.tolerating("one", seconds=30)
    books.cycle()
    first = books.job("one").cluster
    assert charge("one") == {GPU: 2, H100: 2} and first.name in ("north", "west")
    books.sent()
    books.report("one", "Failed")
    assert health.check(timezone.now() + timedelta(seconds=31)) == 1
    books.cycle()
    moved = books.job("one")
    assert moved.attempt == 2 and moved.cluster.name == ({"north", "west"} - {first.name}).pop()
    assert charge("one") == {GPU: 2, H100: 2}
    assert Work.objects.get(attempt=2).node_labels["worker"] == {LABEL: "H100"}


def test_a_table_charges_the_jobs_that_run_by_the_nodes_they_have(fleet):
    apply({GPU: 16}, team(order=""), table=None)
    books.apply(job("one"))
    books.cycle()
    assert charge("one") == {GPU: 2} and Work.objects.get().node_labels is None
    model = "h100" if books.job("one").cluster.name == "north" else "a100"
    apply(FLEET, team())
    assert charge("one") == {GPU: 2, f"{GPU}:{model}": 2}
    apply({GPU: 16}, team(order=""), table=None)
    assert charge("one") == {GPU: 2}


def test_a_table_charges_running_jobs_by_their_pods_once_these_are_bound(fleet):
    apply({GPU: 16}, team(order=""), table=None)
    books.apply(job("one"))
    books.cycle()
    placed = books.job("one")
    Hold.objects.update(released_at=timezone.now())
    for role in ("master", "worker"):
        about = {"namespace": "default", "name": f"one-{role}-0", "uid": role, "job_uid": placed.uid, "attempt": 1}
        Pod.objects.create(
            cluster=placed.cluster, role=role, node="node", phase="Running", created_at=timezone.now(), **about
        )
    apply(FLEET, team())
    model = "h100" if placed.cluster.name == "north" else "a100"
    assert charge("one") == {GPU: 2, f"{GPU}:{model}": 2}


def test_a_table_by_which_jobs_that_run_would_be_above_a_max_is_refused(fleet):
    apply({GPU: 16}, team(order=""), table=None)
    books.apply(job("one", 8), job("two", 8))
    books.cycle()
    with pytest.raises(
        Conflict, match="root/a would have max 4 nvidia.com/gpu:h100 while its jobs use 8 nvidia.com/gpu:h100"
    ):
        apply(FLEET, team(h100=4))
    assert charge("one") == {GPU: 8}


def test_the_first_tree_charges_the_jobs_that_run_by_flavor(fleet):
    books.apply(job("one"))
    books.cycle()
    assert books.job("one").charge is None
    apply(FLEET, team())
    model = "h100" if books.job("one").cluster.name == "north" else "a100"
    assert charge("one") == {GPU: 2, f"{GPU}:{model}": 2}


def test_an_invalid_amount_of_a_flavor_is_refused_with_its_field():
    with pytest.raises(InvalidInput) as caught:
        apply(FLEET, team(v100=4))
    assert [fault.field for fault in caught.value.faults] == [f"spec.root.children[0].max.{GPU}:v100"]


def test_a_tree_with_flavors_reads_back_as_it_was_written(fleet):
    apply(FLEET, team(h100=4))
    spec = QuotaTree.objects.get().manifest["spec"]["root"]
    assert json.loads(spec["attributes"]["flavors"]) == TABLE
    assert spec["children"][0]["max"] == {GPU: 16, H100: 4}
    assert yaml.safe_load(yaml.safe_dump(spec)) == spec


def documented_tree(when: str = "") -> dict:
    """The example of docs/quota-models.md, with ``when-can-preempt`` of vision."""
    text = (
        Path("docs/quota-models.md")
        .read_text()
        .partition("## GPU models")[2]
        .partition("```yaml\n")[2]
        .partition("```")[0]
    )
    root = yaml.safe_load(text)["root"]
    for key in ("min", "max"):
        root[key] = {**REST, **root[key]}
    for leaf in root["children"]:
        leaf["namespaces"] = ["default"] if leaf["name"] == "vision" else []
    if when:
        root["children"][0]["attributes"]["when-can-preempt"] = when
    return manifest({"name": "root", **root})


def amounts_of(path: str) -> tuple[int, int, int]:
    """Used, borrowed and lent H100."""
    amount = usage.report(snapshot.tree_in_force()[0])[path][H100]
    return amount.used, amount.borrowed, amount.lent


@pytest.mark.parametrize(
    "when, model, vision, speech", [("", A100, (0, 0, 4), (8, 8, 0)), ("MayStopSearch", H100, (4, 0, 0), (4, 4, 0))]
)
def test_the_documented_example_goes_as_it_says(when, model, vision, speech):
    for name, gpus, label in (("north", 8, "h100"), ("south", 16, "a100")):
        product = {"h100": "NVIDIA-H100-80GB-HBM3", "a100": "NVIDIA-A100-SXM4-80GB"}[label]
        books.a_cluster(name, gpus).nodes.update(labels={LABEL: product})
    trees.apply(documented_tree(when), by="system", now=timezone.now())
    for name in ("s0", "s1", "s2", "s3"):
        books.apply(job(name, 4, "speech"))
        books.cycle()
        books.sent()
    assert sorted(tuple(charge(f"s{i}"))[1] for i in range(4)) == [A100, A100, H100, H100]
    assert amounts_of("root/vision") == (0, 0, 4) and amounts_of("root/speech") == (8, 8, 0)
    books.apply(job("v", 4, "vision"))
    books.cycle()
    for left in Job.objects.filter(state="Reclaiming"):
        assert "root/speech is 8 nvidia.com/gpu:h100 above its min" in left.reclaim["message"]
        loop.advance_evictions(timezone.now())
        books.gone(left.name)
        loop.advance_evictions(timezone.now())
    books.cycle()
    assert tuple(charge("v")) == (GPU, model)
    assert amounts_of("root/vision") == vision and amounts_of("root/speech") == speech
