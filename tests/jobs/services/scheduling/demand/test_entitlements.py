"""Which leaf a job is under, as the tree changes below it; and the trees that running jobs do not let pass."""

from copy import copy

import pytest
import yaml
from django.utils import timezone

from fleet.errors import Conflict
from jobs.core.scheduling.scheduler import Scheduler
from jobs.models import Job
from jobs.services.scheduling.demand import entitlements
from quotas.models import Queue, QuotaTree
from quotas.services import queues, trees
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import GPU, team
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
WHOLE = {"cpu": 10**5, "memory": "900000Gi", GPU: 1000, "kube-queue/max-jobs": 1000}


def apply_tree(*children: dict) -> None:
    trees.apply(manifest(quota("root", WHOLE, WHOLE, *children)), by="system", now=timezone.now())


def labelled(called: str, **labels: str) -> str:
    body = yaml.safe_load(pytorch_job(called))
    body["metadata"]["labels"] = {f"quota.scheduling.alibabacloud.com/{key}": value for key, value in labels.items()}
    return yaml.safe_dump(body)


@pytest.fixture
def running():
    """One job of three GPUs that runs in root/a."""
    books.a_cluster()
    apply_tree(team("a", namespaces=["default"]))
    books.apply(pytorch_job("llama"))
    books.cycle()
    assert books.job("llama").state == Job.State.PLACED


def test_it_charges_in_the_update_that_places(running):
    assert books.job("llama").charge[GPU] == 3 and books.used("root/a")[GPU] == 3


def test_it_finds_the_leaf_by_namespace_and_by_label_where_that_is_allowed():
    apply_tree(team("a", namespaces=["default"]), team("open"), team("theirs", namespaces=["other"]))
    books.apply(pytorch_job("plain"), labelled("named", name="open"), labelled("thief", name="theirs"))
    leaves = dict(Job.objects.values_list("name", "leaf"))
    assert leaves == {"plain": "root/a", "named": "root/open", "thief": ""}
    assert "which is for namespace other and not for default" in books.job("thief").leaf_fault


def test_it_holds_a_job_that_names_a_leaf_which_is_not_its_own():
    books.a_cluster()
    apply_tree(team("theirs", namespaces=["other"]))
    books.apply(labelled("thief", name="theirs"))
    books.cycle()
    assert books.job("thief").reason["code"] == "NoQuotaForNamespace"


def test_it_reads_whether_a_job_may_be_taken_back_from():
    books.apply(labelled("firm", preemptible="false"), labelled("soft", preemptible="true"))
    assert dict(Job.objects.values_list("name", "preemptible")) == {"firm": False, "soft": True}


def test_it_moves_a_running_jobs_charge_with_its_leaf(running):
    apply_tree(team("b", namespaces=["default"]))
    assert books.job("llama").leaf == "root/b" and books.used("root/b")[GPU] == 3


def test_it_refuses_a_tree_in_which_a_running_job_has_no_leaf(running):
    with pytest.raises(Conflict, match="1 running jobs would belong to no leaf: default/llama"):
        apply_tree(team("a", namespaces=["other"]))
    assert books.job("llama").leaf == "root/a"


def test_it_refuses_a_max_below_what_runs_and_says_both_numbers(running):
    with pytest.raises(Conflict, match=r"root/a would have max 2 nvidia.com/gpu while its jobs use 3 nvidia.com/gpu"):
        apply_tree(team("a", 0, 2, namespaces=["default"]))


def test_it_refuses_to_drop_the_tree_that_jobs_run_by(running):
    with pytest.raises(Conflict, match="1 jobs run by it"):
        trees.delete("tree", by="system", now=timezone.now())
    assert QuotaTree.objects.exists()


def test_it_counts_what_runs_already_when_the_first_tree_comes():
    books.a_cluster()
    books.apply(pytorch_job("llama"))
    books.cycle()
    apply_tree(team("a", namespaces=["default"]))
    assert books.used("root/a")[GPU] == 3
    with pytest.raises(Conflict, match="root/a would have max 2"):
        apply_tree(team("a", 0, 2, namespaces=["default"]))


def test_it_reads_those_again_who_were_submitted_under_another_tree(running):
    books.apply(pytorch_job("late"))
    Job.objects.filter(name="late").update(leaf="root/gone", tree_version=0)
    books.cycle()
    assert books.job("late").leaf == "root/a" and books.job("late").state == Job.State.PLACED


def test_it_reads_all_again_when_the_tree_changes_once_more_meanwhile(running, monkeypatch):
    edits, refit = [5], entitlements.refit_stale

    def edited_after() -> int:
        done = refit()
        if edits:
            apply_tree(team("a", 0, edits.pop(), namespaces=["default"]))
        return done

    apply_tree(team("a", 0, 3, namespaces=["default"]))
    books.apply(pytorch_job("late", workers=1))
    monkeypatch.setattr(entitlements, "refit_stale", edited_after)
    books.cycle()
    assert not edits and books.job("late").state == Job.State.PLACED


def test_it_plans_although_the_tree_is_edited_without_a_pause(running, monkeypatch):
    books.apply(pytorch_job("late"))
    edits, refit = iter(range(40)), entitlements.refit_stale

    def edited_after() -> int:
        done = refit()
        if (edit := next(edits, None)) is not None:
            apply_tree(team("a", 0, 10 + edit, namespaces=["default"]))
        return done

    apply_tree(team("a", 0, 9, namespaces=["default"]))
    plans = []
    run = Scheduler.run
    monkeypatch.setattr(Scheduler, "run", lambda self, *args: plans.append(len(list(copy(edits)))) or run(self, *args))
    monkeypatch.setattr(entitlements, "refit_stale", edited_after)
    books.cycle()
    assert plans[0] > 30 and books.job("late").state == Job.State.PLACED


def test_it_knows_a_job_that_another_process_has_read_again(running, monkeypatch):
    refit = entitlements.refit_stale
    books.apply(pytorch_job("late"))
    Job.objects.filter(name="late").update(leaf="root/gone", tree_version=0)
    monkeypatch.setattr(entitlements, "refit_stale", lambda: refit() and refit())
    books.cycle()
    assert books.job("late").state == Job.State.PLACED


def test_it_takes_no_job_into_a_queue_that_drains(running):
    queue = Queue.objects.get(path="root/a")
    queues.set_state(queue, Queue.State.DRAINING, by="system", now=timezone.now())
    with pytest.raises(Conflict, match="root/a .* drains and takes no more jobs"):
        books.apply(pytorch_job("more"))
    assert not Job.objects.filter(name="more").exists() and books.job("llama").state == Job.State.PLACED
