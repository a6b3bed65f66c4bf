"""No-flap, on crowds made to quarrel: every job wants two resources that are promised to different people, and queues preempt.

Each seed is one story of four waves. With a right for each single resource, priorities, and gangs that straddle, about one in
a thousand had three jobs that chased each other.
"""

from dataclasses import replace
from random import Random

import pytest

from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.simulation import Job, simulate_to_fixpoint
from quotas.core.trees.amounts import of_job
from tests.quotas.core.builders import NOON, quota, tree, unit
from tests.quotas.core.forests import RESOURCES


def teams(rng, low, top, levels, states=1.0):
    """``states``: how probable it is that a quota states how many CPUs it is promised."""
    made = []
    for i in range(rng.randint(2, 3)):
        own = {name: rng.choice([0, left // 2, left, rng.randint(0, left)]) for name, left in low.items()}
        low = {name: left - own[name] for name, left in low.items()}
        silent = states < 1 and rng.random() > states
        own = {**own, "cpu": 0} if silent else own
        attributes = {"preempt-policy": rng.choice(["PreemptLowerPriority", "Never"])}
        if rng.random() < 0.15 and not silent:
            attributes["alibabacloud.com/lendlimit"] = f'{{"cpu": {rng.randint(0, own["cpu"])}}}'
        below = teams(rng, own, top, levels - 1, states) if levels and rng.random() < 0.35 else []
        stated = {"nvidia.com/gpu": own["nvidia.com/gpu"]} if silent else own
        made.append(quota(f"n{i}", stated, top, *below, attributes=attributes))
    return made


def comer(rng, name, leaves):
    amounts = of_job({"cpu": rng.randint(0, 7) * 1000, "nvidia.com/gpu": rng.randint(0, 6)})
    charge = Charge(rng.choice(leaves), amounts, rng.random() < 0.9)
    blank = unit(name, priority=rng.randint(0, 2), after_s=rng.randint(0, 9))
    return Job(replace(blank, charge=charge), elastic=rng.random() < 0.3)


def places(most):
    """One cluster, smaller than the quota in some resource."""

    def room(asking, running, gone):
        there = [job.unit for key, job in running.items() if key not in gone]
        used = {name: sum(each.charge.amounts[name] for each in [asking, *there]) for name in most}
        return all(used[name] <= most[name] for name in most)

    return room


@pytest.mark.parametrize("states", [1.0, 0.5])
@pytest.mark.parametrize("seed", range(30))
def test_it_comes_to_rest_whoever_quarrels(seed, states):
    rng = Random(seed)
    top = {name: rng.randint(4, 16) for name in RESOURCES}
    found = tree(top, *teams(rng, top, top, rng.randint(0, 2), states))
    whole = {"cpu": top["cpu"] * 1000, "nvidia.com/gpu": top["nvidia.com/gpu"]}
    room = places({name: rng.choice([amount, amount // 2]) for name, amount in whole.items()})
    ledger, jobs, leaves = Ledger(found), {}, [leaf.path for leaf in found.leaves]
    for wave in range(4):
        jobs |= {f"{wave}-{i}": comer(rng, f"{wave}-{i}", leaves) for i in range(rng.randint(3, 8))}
        made = simulate_to_fixpoint(ledger, jobs.values(), NOON, room)
        jobs = {key: made.running.get(key) or replace(job, started_at=None) for key, job in jobs.items()}
        again = simulate_to_fixpoint(ledger, jobs.values(), NOON, room)
        assert again.reclaims == [] and again.running.keys() == made.running.keys()
        assert (ledger.held.used <= ledger.max).all()
        assert ledger.used("root")["cpu"] == sum(job.unit.charge.amounts["cpu"] for job in made.running.values())
        for key in [key for key in made.running if rng.random() < 0.4]:
            ledger.release(jobs.pop(key).unit.charge)
