"""A limit lowered below what runs, and a leaf removed under running jobs: refused, waited for, or taken back."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.errors import Conflict
from jobs.models import Job, Work
from jobs.services.scheduling import loop
from quotas.models import QuotaTree
from quotas.services import previews, trees, usage
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import GPU, team
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
WHOLE = {"cpu": 10**5, "memory": "900000Gi", GPU: 64, "kube-queue/max-jobs": 1000}


def a_tree(*leaves: dict, excess: str = "", **attributes: str) -> dict:
    stated = {**attributes, **({"excess": excess} if excess else {})}
    return manifest(quota("root", WHOLE, WHOLE, *leaves, attributes=stated))


def lowered(high: int, excess: str = "") -> dict:
    return a_tree(team("a", 0, high, namespaces=["default"]), excess=excess)


REMOVED = team("b", 0, 64), {"outside-jobs": "Wait"}


def removed(excess: str = "") -> dict:
    """A tree without the leaf that the running jobs belong to."""
    leaf, attributes = REMOVED
    return a_tree(leaf, excess=excess, **attributes)


def apply(tree: dict) -> tuple[str, ...]:
    return trees.apply(tree, by="system", now=timezone.now()).warnings


def preview(tree: dict) -> previews.Preview:
    return previews.of_manifest(tree, by="system", now=timezone.now())


def states() -> dict[str, str]:
    return dict(Job.objects.values_list("name", "state"))


@pytest.fixture
def three():
    """Three jobs of 2 GPUs run in root/a: one for an hour, one for half of it, one for a minute."""
    books.a_cluster(gpus=64)
    apply(lowered(64))
    for name, minutes in (("old", 60), ("mid", 30), ("new", 1)):
        books.apply(pytorch_job(name, workers=1))
        books.cycle()
        books.sent()
        started = timezone.now() - timedelta(minutes=minutes)
        Job.objects.filter(name=name).update(state="Running", started_at=started)


def leaves(name: str) -> None:
    Work.objects.filter(job_uid=books.job(name).uid).update(state=Work.State.SUSPENDED)
    loop.advance_evictions(timezone.now())
    books.gone(name)
    loop.advance_evictions(timezone.now())


@pytest.mark.parametrize("stated", ["", "Refuse"])
def test_refuse_refuses_the_edit_with_both_numbers(three, stated):
    with pytest.raises(Conflict, match=r"root/a would have max 3 nvidia.com/gpu while its jobs use 6 nvidia.com/gpu"):
        apply(lowered(3, stated))
    told = preview(lowered(3, stated))
    [excess] = told.effect.excess
    assert not told.saves and (excess.policy, excess.used, excess.limit) == ("Refuse", 6, 3)
    assert told.effect.reclaimed == () and QuotaTree.objects.get().generation == 1


def test_it_names_every_node_that_is_in_the_way(three):
    whole = {**WHOLE, GPU: 4}
    tree = manifest(quota("root", whole, whole, team("a", 0, 3, namespaces=["default"])))
    with pytest.raises(Conflict, match=r"root would have max 4 .* use 6 .*; root/a would have max 3 .* use 6 "):
        apply(tree)


def test_wait_evicts_nothing_and_starts_nothing_until_enough_have_ended(three):
    [warning] = apply(lowered(3, "Wait"))
    assert "root/a has max 3 nvidia.com/gpu, with 6 nvidia.com/gpu used: nothing starts there" in warning
    books.apply(pytorch_job("next", workers=0))
    books.cycle()
    assert states() == {"old": "Running", "mid": "Running", "new": "Running", "next": "Queued"}
    assert books.job("next").reason["code"] == "QuotaExceeded"
    books.end("old")
    books.cycle()
    assert states()["next"] == "Queued"
    books.end("mid")
    books.cycle()
    assert states() == {"old": "Succeeded", "mid": "Succeeded", "new": "Running", "next": "Placed"}


def test_take_back_evicts_what_loses_least_and_the_preview_names_it(three):
    told = preview(lowered(3, "TakeBack"))
    [excess] = told.effect.excess
    assert told.saves and excess.policy == "TakeBack" and excess.lost_gpu_hours == pytest.approx(1.03, abs=0.01)
    evicted = {line.job: line for line in told.effect.reclaimed}
    assert set(evicted) == {"PyTorchJob default/new", "PyTorchJob default/mid"} == set(excess.jobs)
    assert evicted["PyTorchJob default/mid"].code == "AboveMax"
    assert "1.0 GPU-hours of its work are lost" in evicted["PyTorchJob default/mid"].message
    assert states() == {"old": "Running", "mid": "Running", "new": "Running"}

    [warning] = apply(lowered(3, "TakeBack"))
    assert "jobs are evicted until it is within its limit" in warning
    books.cycle()
    assert states() == {"old": "Running", "mid": "Reclaiming", "new": "Reclaiming"}
    assert "root/a has max 3 nvidia.com/gpu, with 6" in books.job("new").reason["message"]


def test_take_back_evicts_no_more_in_the_cycles_that_follow(three):
    apply(lowered(4, "TakeBack"))
    for _ in range(3):
        books.cycle()
    assert states() == {"old": "Running", "mid": "Running", "new": "Reclaiming"}
    leaves("new")
    books.cycle()
    assert states()["new"] == "Queued" and books.job("new").reason["code"] == "QuotaExceeded"
    assert books.used("root/a")[GPU] == 4


def test_a_node_that_waited_takes_back_once_it_states_so(three):
    apply(lowered(2, "Wait"))
    books.cycle()
    apply(lowered(2, "TakeBack"))
    books.cycle()
    assert sorted(states().values()) == ["Reclaiming", "Reclaiming", "Running"]


def test_an_edit_elsewhere_is_not_refused_while_a_node_waits(three):
    apply(lowered(3, "Wait"))
    apply(a_tree(team("a", 0, 3, namespaces=["default"]), team("c", 0, 5), excess="Wait"))
    with pytest.raises(Conflict, match="root/a would have max 3"):
        apply(lowered(3, "Refuse"))


def test_take_back_is_refused_where_jobs_that_may_not_be_preempted_are_above_max():
    books.a_cluster(gpus=64)
    apply(a_tree(team("a", 8, 8, namespaces=["default"])))
    body = yaml.safe_load(pytorch_job("firm", workers=3))
    body["metadata"]["labels"] = {"quota.scheduling.alibabacloud.com/preemptible": "false"}
    books.apply(yaml.safe_dump(body))
    books.cycle()
    with pytest.raises(Conflict, match=r"root/a would have max 2 .* while jobs that may not be preempted use 4"):
        apply(a_tree(team("a", 2, 2, namespaces=["default"]), excess="TakeBack"))
    apply(a_tree(team("a", 2, 2, namespaces=["default"]), excess="Wait"))


def test_a_leaf_is_not_removed_under_running_jobs_where_the_node_above_refuses(three):
    with pytest.raises(Conflict, match="3 running jobs would belong to no leaf: default/old, default/mid, default/new"):
        apply(removed())


def test_a_leaf_is_removed_and_its_running_jobs_run_on_uncharged(three):
    told = preview(removed("Wait"))
    assert told.saves and len(told.effect.unbound) == 3 and told.effect.reclaimed == ()
    apply(removed("Wait"))
    books.cycle()
    assert set(states().values()) == {"Running"}
    assert {(job.leaf, job.charge) for job in Job.objects.all()} == {("", None)}
    assert usage.total_outside() == usage.Outside(running=3, gpus=6)


def test_a_leaf_is_removed_and_its_running_jobs_are_evicted_and_wait(three):
    told = preview(removed("TakeBack"))
    assert told.saves and {line.code for line in told.effect.reclaimed} == {"WithoutLeaf"}
    assert len(told.effect.reclaimed) == 3 and told.outside.running == 0
    assert sum(line.lost_gpu_hours for line in told.effect.reclaimed) == pytest.approx(3.03, abs=0.02)
    apply(removed("TakeBack"))
    books.cycle()
    assert set(states().values()) == {"Reclaiming"}
    apply(a_tree(REMOVED[0], team("c", 0, 1), excess="Refuse", **REMOVED[1]))  # another edit while they leave
    for name in ("old", "mid", "new"):
        leaves(name)
    books.cycle()
    assert {(job.state, job.reason["code"], job.charge) for job in Job.objects.all()} == {
        ("Queued", "NoQuotaForNamespace", None)
    }


def test_a_removed_leaf_that_comes_back_before_the_cycle_keeps_its_jobs(three):
    apply(removed("TakeBack"))
    apply(lowered(64))
    books.cycle()
    assert set(states().values()) == {"Running"} and books.used("root/a")[GPU] == 6
