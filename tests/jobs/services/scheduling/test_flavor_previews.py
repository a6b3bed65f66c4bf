"""What a change of the tree would do, and what would help a waiting job, by GPU model: on rows, through the services."""

import json

import pytest
from django.utils import timezone

from jobs.models import Job
from jobs.services.inspect import explaining
from quotas.core.trees.parsing import parse_tree
from quotas.services import impact
from tests.jobs.services.scheduling.flavor_worlds import A100, FLEET, GPU, H100, REST, TABLE, apply, fleet, job, team
from tests.quotas.core.builders import manifest, quota
from tests.support import books

__all__ = ["fleet"]
pytestmark = pytest.mark.django_db


def tree_of(leaf: dict, table: dict | None = TABLE):
    stated = {"flavors": json.dumps(table)} if table else {}
    total = {**REST, **(FLEET if table else {GPU: 16})}
    found = parse_tree(manifest(quota("root", total, total, leaf, attributes=stated))).tree
    assert found is not None
    return found


def effect(before, after):
    return impact.effect_of_change(before, after, timezone.now())


def test_a_preview_starts_the_jobs_that_another_model_has_room_for(fleet):
    apply(FLEET, team(h100=4, a100=0))
    books.apply(job("runs", 4), job("waits", 4), job("large", 8))
    books.cycle()
    assert books.job("runs").charge[H100] == 4
    made = effect(tree_of(team(h100=4, a100=0)), tree_of(team(h100=4, a100=4)))
    assert [line.job for line in made.starts] == ["PyTorchJob default/waits"]
    made = effect(tree_of(team(h100=4, a100=4)), tree_of(team(h100=4, a100=0)))
    [line] = made.waits
    assert "h100: asks for 4 nvidia.com/gpu:h100" in line.message and "; a100: " in line.message


def test_a_preview_of_a_new_table_counts_what_runs_by_its_nodes(fleet):
    apply({GPU: 16}, quota("a", None, {GPU: 16}, namespaces=["default"]), table=None)
    books.apply(job("one", 8), job("two", 8))
    books.cycle()
    assert H100 not in books.job("one").charge
    made = effect(tree_of(quota("a", None, {GPU: 16}), None), tree_of({**team(h100=4), "namespaces": ["default"]}))
    assert [(each.resource, each.used, each.limit) for each in made.excess] == [(H100, 8, 4)]


def test_what_would_help_names_the_model_whose_limit_is_in_the_way(fleet):
    apply(FLEET, team(h100=4, a100=4))
    books.apply(job("one", 4), job("two", 4), job("three", 4))
    books.cycle()
    waiting = Job.objects.get(state="Queued")
    told = explaining.explain_job(waiting, timezone.now())
    raised = [change for change in told.changes if change.kind == "RaiseQuota"]
    assert [change.amounts for change in raised] == [{H100: 8}, {A100: 8}]
    assert raised[1].message == "raise max of root/a to 8 nvidia.com/gpu:a100"
    assert "h100: asks for 4 nvidia.com/gpu:h100: root/a has max 4" in told.message
