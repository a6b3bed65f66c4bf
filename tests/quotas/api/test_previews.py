"""A change simulated before it is saved: faults with the node they are about, who could not save it, and what it would do."""

from datetime import UTC, datetime

import pytest

from quotas import signals
from quotas.core.accounts.ledger import Charge
from quotas.core.queues.order import Unit
from quotas.core.reclaiming.candidates import Running
from quotas.services import impact, usage
from tests.quotas.api.builders import START, TREE, edit

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def charge(leaf, cores):
    return Charge(f"root/{leaf}", {"cpu": cores * 1000, "kube-queue/max-jobs": 1})


@pytest.fixture
def crowd(monkeypatch):
    """b runs 9 in one job of 4 and one of 5; a job of a waits for as much as is said."""

    def waits_for(cores):
        running = [Running(f"b-{n}", charge("b", n), 0, NOON) for n in (4, 5)]
        waiting = [Unit("default/a-1", "a-1", charge("a", cores), 0, NOON)]
        monkeypatch.setattr(impact, "_sources", [lambda now: lambda tree: (running, waiting)])

    return waits_for


def preview(client, *changes, **given):
    answer = client.post(f"{TREE}preview/", given or {"changes": changes}, format="json")
    assert answer.status_code == 200, answer.json()
    return answer.json()


def test_it_puts_each_fault_beside_its_field(as_admin, tree):
    told = preview(as_admin, edit(min={"cpu": "x"}), edit("root/b", max={"cpu": 11}))
    assert [(each["path"], each["field"]) for each in told["faults"]] == [
        ("root/a", "min.cpu"), ("root/b", "max.cpu"),
    ]  # fmt: skip
    assert not told["saves"]


def test_it_says_who_would_start_and_saves_nothing(as_admin, tree, crowd):
    crowd(6)
    more = [edit("root", min={"cpu": 16}, max={"cpu": 16})]
    told = preview(as_admin, *more)
    assert [each["job"] for each in told["effect"]["starts"]] == ["default/a-1"] and told["saves"]
    assert as_admin.get(TREE).json()["generation"] == 1


def test_it_says_who_would_be_reclaimed_for_whom(as_admin, tree, crowd):
    crowd(4)
    told = preview(as_admin, edit(min={"cpu": 2}))
    assert told["effect"]["reclaimed"] == []
    as_admin.patch(TREE, {"changes": [edit(min={"cpu": 2})]}, format="json")
    [victim] = preview(as_admin, edit(min={"cpu": 4}))["effect"]["reclaimed"]
    assert victim["job"] in ("b-4", "b-5") and "makes room for default/a-1" in victim["message"]


def test_it_says_who_would_have_to_wait(as_admin, tree, crowd):
    crowd(6)
    as_admin.patch(TREE, {"changes": [edit("root", min={"cpu": 16}, max={"cpu": 16})]}, format="json")
    [waits] = preview(as_admin, manifest=START)["effect"]["waits"]
    assert waits["job"] == "default/a-1" and "asks for 6 cpu" in waits["message"]


def test_it_says_whose_jobs_stand_in_the_way_and_whose_it_is(as_lead, as_admin, tree):
    def veto(sender, before, after, **_):
        return "root/a has 2 running jobs"

    signals.tree_changing.connect(veto)
    told = preview(as_lead, edit(min={"cpu": "3"}))
    signals.tree_changing.disconnect(veto)
    assert told["refusals"][0] == "root/a has 2 running jobs" and "lea may not change root/a" in told["refusals"][1]


def test_it_says_what_would_be_outside_the_tree_and_so_does_the_tree(as_admin, tree, monkeypatch):
    monkeypatch.setattr(usage, "_outside", [lambda: usage.Outside(running=3, waiting=2, gpus=24)])
    found = {"running": 3, "waiting": 2, "gpus": 24}
    told = preview(as_admin, edit(min={"cpu": 2}))
    assert told["outside"] == found and "3 running jobs outside the tree stay, with 24 GPUs" in told["warnings"][0]
    shown = as_admin.get(TREE).json()
    assert shown["outside"] == found and shown["outside_jobs"] == "Wait"
    runs = preview(as_admin, edit("root", attributes={"outside-jobs": "Run"}))
    assert runs["outside"] == found and runs["warnings"] == []


def test_it_says_what_follows_where_more_runs_than_the_change_allows(as_admin, tree, crowd):
    crowd(1)
    lowered = edit("root/b", max={"cpu": 6}, attributes={"excess": "TakeBack"})
    told = preview(as_admin, lowered)
    [excess] = told["effect"]["excess"]
    assert (excess["path"], excess["policy"], excess["jobs"]) == ("root/b", "TakeBack", ["b-4"])
    [victim] = told["effect"]["reclaimed"]
    assert (victim["job"], victim["code"]) == ("b-4", "AboveMax") and "root/b has max 6 cpu" in victim["message"]
    wrong = preview(as_admin, edit("root/b", attributes={"excess": "Perhaps"}))
    assert wrong["faults"][0]["detail"] == "root/b: must be one of Refuse, Wait, TakeBack, not 'Perhaps'"
