"""Jobs that belong to no leaf: the tree says whether they wait, and no edit lets those that wait start beside the quota."""

import pytest
from django.utils import timezone

from fleet.errors import Conflict
from jobs.models import Job
from quotas.models import QuotaTree
from quotas.services import previews, trees
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import GPU, team
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
WHOLE = {"cpu": 10**5, "memory": "900000Gi", GPU: 8, "kube-queue/max-jobs": 1000}


def a_tree(*leaves: dict, outside: str = "") -> dict:
    stated = {"attributes": {"outside-jobs": outside}} if outside else {}
    return manifest(quota("root", WHOLE, WHOLE, *leaves, **stated))


def apply(tree: dict) -> None:
    trees.apply(tree, by="system", now=timezone.now())


def waiting_in_a_full_leaf(outside: str = "") -> None:
    books.a_cluster(gpus=64)
    apply(a_tree(team("a", 0, 0, namespaces=["default"]), team("b", 0, 8), outside=outside))
    books.apply(*(pytorch_job(f"w{i}", workers=0) for i in range(5)))
    books.cycle()
    assert set(Job.objects.values_list("state", flat=True)) == {"Queued"}


def states() -> set[str]:
    books.cycle()
    return set(Job.objects.values_list("state", flat=True))


def test_it_refuses_to_drop_a_leaf_by_which_jobs_wait_and_says_what_to_state():
    waiting_in_a_full_leaf()
    with pytest.raises(Conflict, match=r"5 waiting jobs would belong to no leaf: default/w0.*outside-jobs: Wait"):
        apply(a_tree(team("b", 0, 8)))
    [refusal] = previews.of_manifest(a_tree(team("b", 0, 8)), by="system", now=timezone.now()).refusals
    assert "outside-jobs" in refusal and states() == {"Queued"}


@pytest.mark.parametrize(("choice", "after"), [("Wait", "Queued"), ("Run", "Placed")])
def test_it_drops_the_leaf_where_the_tree_says_what_becomes_of_its_jobs(choice, after):
    waiting_in_a_full_leaf()
    apply(a_tree(team("b", 0, 8), outside=choice))
    assert states() == {after}
    if choice == "Wait":
        assert {job.reason["code"] for job in Job.objects.all()} == {"NoQuotaForNamespace"}


@pytest.mark.parametrize("stated", ["", "Wait"])
def test_it_refuses_to_delete_a_tree_by_which_jobs_wait(stated):
    waiting_in_a_full_leaf(stated)
    with pytest.raises(Conflict, match="5 waiting jobs"):
        trees.delete("tree", by="system", now=timezone.now())
    assert QuotaTree.objects.exists() and states() == {"Queued"}


def test_it_deletes_a_tree_by_which_jobs_wait_where_it_says_that_jobs_outside_it_run():
    waiting_in_a_full_leaf("Run")
    trees.delete("tree", by="system", now=timezone.now())
    assert states() == {"Placed"}


def test_it_lets_what_runs_outside_run_on_when_the_first_tree_says_that_such_jobs_wait():
    books.a_cluster(gpus=64)
    books.apply(pytorch_job("runs", workers=0))
    books.cycle()
    apply(a_tree(team("a", 0, 8), outside="Wait"))
    books.apply(pytorch_job("comes", workers=0))
    books.cycle()
    assert (books.job("runs").state, books.job("comes").state) == ("Placed", "Queued")
    assert books.job("comes").reason["code"] == "NoQuotaForNamespace"


def test_it_takes_the_choice_at_the_root_alone_and_only_one_it_knows():
    for tree in (
        a_tree(team("a", 0, 8), outside="Perhaps"),
        a_tree(team("a", 0, 8, attributes={"outside-jobs": "Wait"})),
    ):
        with pytest.raises(Exception, match="outside-jobs"):
            apply(tree)
