"""In random fleets whose gangs stand on nodes: a waiting gang within its min gets a place whenever borrowers could make it one.

The oracle tries every set of running gangs. It counts the GPUs of nodes and queues, and knows nothing of the engine. In fleets
too large for that one such set is planted.
"""

from collections import Counter
from itertools import chain, combinations
from random import Random

import pytest

from jobs.core.preemption import making_room
from tests.jobs.core.preemption.worlds_of_nodes import CLAIMANT, Gang, World
from tests.support.examples import IS_FULL

WORLDS = 4000 if IS_FULL else 60


def random_world(rng: Random) -> World:
    """Full nodes, mostly; gangs of one pod and of several; mins that gangs straddle."""
    capacity = {("c0" if i < 4 or rng.random() < 0.5 else "c1", i): 8 for i in range(rng.randint(2, 6))}
    free, gangs = Counter(capacity), []
    for job in range(1, rng.randint(4, 10)):
        gpus, pods = rng.choice([1, 2, 2, 4, 4, 8]), rng.choice([1, 1, 1, 2, 3])
        name, nodes = rng.choice(["c0", "c0", "c1"]), []
        for _ in range(pods):
            fits = [node for node in capacity if node[0] == name and free[node] >= gpus]
            if fits:
                nodes.append(rng.choice(fits))
                free[nodes[-1]] -= gpus
        if nodes:
            leaf = rng.choice("abbbccd")
            gangs.append(Gang(job, leaf, rng.randint(0, 2), tuple(nodes), gpus, rng.choice([60, 600, 3600, 7000])))
    left = sum(capacity.values())
    gpus, pods = rng.choice([2, 4, 8, 8]), rng.choice([1, 1, 2, 3])
    own = sum(each.size for each in gangs if each.leaf == "a")
    mins = {"a": min(left, gpus * pods + rng.choice([own, own, 0])), "e": 0}
    left -= mins["a"]
    for leaf in "bcd":
        used = sum(each.size for each in gangs if each.leaf == leaf)
        mins[leaf] = min(left, rng.choice([0, max(used - 1, 0), max(used - 2, 0), rng.randint(0, used)]))
        left -= mins[leaf]
    big = rng.choice([0, 0, 8, 16])
    return World(capacity, mins, tuple(gangs), pods, gpus, rng.random() < 0.3, big)


def test_a_gang_within_its_min_is_served_by_every_set_of_borrowers_that_makes_room():
    judged = 0
    for seed in range(WORLDS):
        world = random_world(Random(seed))
        if world.has_place():
            continue
        preemption = world.plan()
        chosen = [each.target.job_id for each in preemption.evictions if each.preemptor.job_id == CLAIMANT]
        gone = tuple(each for each in world.gangs if each.job in chosen)
        if next(world.choices(), None) is None:
            assert not chosen, f"world {seed}: it stops {chosen} in vain"
        else:
            judged += 1
            assert gone, f"world {seed}: it waits, though {next(world.choices())} could go"
            assert world.may_go(gone) and world.has_place(gone), f"world {seed}"
            smaller = chain.from_iterable(combinations(gone, n) for n in range(len(gone)))
            assert not any(world.may_go(each) and world.has_place(each) for each in smaller), f"world {seed}: too many"
    assert judged > WORLDS // 6, judged


def large_world(rng: Random, nodes: int) -> World:
    """Full nodes of small gangs, of three queues. Each is above its min by no more than it has on some nodes of one cluster,
    which are as many as the claimant asks for.
    """
    capacity = {(f"c{i % 2}", i): 8 for i in range(nodes)}
    free, gangs = Counter(capacity), []
    while len(gangs) < 4 * nodes:
        gpus, pods, name = rng.choice([1, 1, 2, 2, 4]), rng.choice([1, 1, 1, 2, 4]), rng.choice(["c0", "c1"])
        slots = [node for node in capacity if node[0] == name for _ in range(free[node] // gpus)]
        if len(slots) < pods:
            break
        chosen = slots[:pods] if rng.random() < 0.5 else rng.sample(slots, pods)
        free.subtract({node: gpus * count for node, count in Counter(chosen).items()})
        gangs.append(Gang(1000 + len(gangs), rng.choice("bcd"), 0, tuple(chosen), gpus, rng.choice([60, 600, 7000])))
    rest = [node for node in capacity for _ in range(free[node])]
    gangs += [Gang(5000 + i, rng.choice("bcd"), 0, (node,), 1, 60) for i, node in enumerate(rest)]
    pods = rng.choice([2, 4, 8])
    wanted = set(rng.sample([node for node in capacity if node[0] == "c0"], pods))
    above, used = Counter(), Counter()
    for each in gangs:
        used[each.leaf] += each.size
        above[each.leaf] += each.size if wanted.intersection(each.nodes) else 0
    mins = {leaf: used[leaf] - above[leaf] for leaf in "bcd"}
    return World(capacity, {"a": 8 * pods, **mins, "e": 0}, tuple(gangs), pods, 8, by_priority=False, big=0)


@pytest.mark.parametrize("seed", range(100) if IS_FULL else range(4))
def test_it_is_served_in_a_fleet_that_is_too_large_to_try_every_set(seed):
    world = large_world(Random(seed), nodes=256 if IS_FULL else 64)
    assert not world.has_place()
    chosen = {each.target.job_id for each in world.plan().evictions}
    gone = tuple(each for each in world.gangs if each.job in chosen)
    assert gone and world.may_go(gone) and world.has_place(gone)
    fewer = ([each for each in gone if each is not one] for one in gone)
    assert not any(world.may_go(tuple(some)) and world.has_place(some) for some in fewer)


def test_all_that_is_proposed_in_a_plan_shares_its_steps(monkeypatch):
    world, steps = large_world(Random(0), nodes=64), making_room.Steps(500)
    monkeypatch.setattr(making_room, "Steps", lambda: steps)
    plan = world.plan()
    assert steps.spent and not plan.evictions and plan.no_targets == [CLAIMANT]
    assert not world.plan().no_targets, "others had used them: it is searched for again in the next cycle"
