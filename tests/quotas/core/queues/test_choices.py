"""Simulations know flavors: a waiting job takes the first model that has room, or can be had, and says of each why not."""

import json
from dataclasses import replace

from quotas.core.accounts.ledger import Charge
from quotas.core.impact import Side, compute_effect
from quotas.core.trees.amounts import of_job
from tests.quotas.core.builders import NOON, quota, running, tree, unit

GPU = "nvidia.com/gpu"
TABLE = json.dumps({name: {"model": name} for name in ("a100", "h100")})


def amounts(**models):
    return {GPU: sum(models.values()), **{f"{GPU}:{name}": amount for name, amount in models.items()}}


def fleet(*teams, **total):
    return tree(amounts(**total), *teams, attributes={"flavors": TABLE})


def team(name, low, high, order="h100,a100", **attributes):
    return quota(name, amounts(**low), amounts(**high), attributes={"flavor-order": order, **attributes})


def on(leaf, gpus, *models):
    return tuple(Charge(f"root/{leaf}", of_job(amounts(**{model: gpus}))) for model in models or ("h100", "a100"))


def waits(name, leaf, gpus, *models, **fields):
    choices = on(leaf, gpus, *models)
    return replace(unit(name, **fields), charge=choices[0], choices=choices)


def runs(name, leaf, gpus, model):
    charge = on(leaf, gpus, model)[0]
    return replace(running(name), charge=charge, choices=on(leaf, gpus))


def effect(before, after, running=(), waiting=()):
    return compute_effect(Side(before, running, waiting), Side(after, running, waiting), NOON)


def test_raising_the_max_of_one_model_starts_the_job_that_may_use_it_and_no_other():
    before = fleet(team("a", {}, {"h100": 2, "a100": 0}), h100=8, a100=8)
    after = fleet(team("a", {}, {"h100": 2, "a100": 4}), h100=8, a100=8)
    jobs = [waits("picky", "a", 4, "h100"), waits("any", "a", 4, after_s=1)]
    made = effect(before, after, waiting=jobs)
    assert [line.job for line in made.starts] == ["any"]


def test_a_job_that_waits_says_of_each_model_why():
    before = fleet(team("a", {}, {"h100": 8, "a100": 8}), h100=8, a100=8)
    after = fleet(team("a", {}, {"h100": 4, "a100": 2}), h100=8, a100=8)
    [line] = effect(before, after, waiting=[waits("one", "a", 8)]).waits
    assert "a100: asks for 8 nvidia.com/gpu" in line.message and "; " in line.message
    assert line.message.startswith("h100: asks for 8 nvidia.com/gpu")


def test_it_evicts_only_jobs_on_a_model_that_was_promised():
    before = fleet(team("a", {}, {"h100": 8, "a100": 8}), team("b", {}, {"h100": 8, "a100": 8}), h100=8, a100=8)
    after = fleet(team("a", {"h100": 4}, {"h100": 8, "a100": 8}), team("b", {}, {"h100": 8, "a100": 8}), h100=8, a100=8)
    ran = [runs(f"h{i}", "b", 4, "h100") for i in range(2)] + [runs(f"a{i}", "b", 4, "a100") for i in range(2)]
    made = effect(before, after, ran, [waits("mine", "a", 4)])
    assert [line.job for line in made.starts] == ["mine"]
    assert [line.job for line in made.reclaimed] in (["h0"], ["h1"])


def test_one_that_stops_at_a_model_reclaims_it_before_it_takes_the_next():
    low, high = {"h100": 4, "a100": 0}, {"h100": 8, "a100": 8}
    other = team("b", {}, {"h100": 8, "a100": 0})
    stops = fleet(team("a", low, high, **{"when-can-preempt": "MayStopSearch"}), other, h100=8, a100=8)
    tries = fleet(team("a", low, high), other, h100=8, a100=8)
    ran = [runs(f"h{i}", "b", 4, "h100") for i in range(2)]
    made = effect(tries, stops, ran, [waits("mine", "a", 4)])
    assert [line.leaf for line in made.reclaimed] == ["root/b"]
    assert len(effect(stops, tries, ran, [waits("mine", "a", 4)]).reclaimed) == 0
