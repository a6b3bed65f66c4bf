"""Laws of flavors on random fleets: no model above its max, what is promised of one can be had, none leaves for another."""

from random import Random

import pytest

from tests.jobs.core.preemption.flavored_worlds import World, random_world
from tests.support.examples import examples

WORLDS = examples(20_000)
_FIRST = 100
"""Near it is a world in which a search that did not look at flavors would evict across them."""
_RESTS_WITHIN = 120
_QUIET = 12
"""So many cycles without a change are a rest: what is set aside for a preemptor lasts a minute, which is nine of them."""


def play(seed: int) -> World:
    """Jobs come in three waves, and some end; then the fleet comes to rest."""
    rng = Random(seed)
    world = random_world(rng)
    for wave in range(4):
        world.waiting |= {number for number, first in world.comes.items() if first == wave}
        for _ in range(rng.randint(1, 4)):
            world.step()
            world.check()
        for number in sorted(world.running):
            if rng.random() < 0.1:
                del world.running[number]
    quiet = 0
    for _ in range(_RESTS_WITHIN):
        quiet = 0 if world.step() else quiet + 1
        world.check()
        if quiet == _QUIET:
            return world
    raise AssertionError(f"world {seed} does not come to rest")


def test_flavors_keep_their_laws_in_random_worlds():
    stops = 0
    for seed in range(_FIRST, _FIRST + WORLDS):
        world = play(seed)
        across = [stop for stop in world.stops if stop[0] != stop[1]]
        assert not across, f"world {seed}: jobs left for another model: {across}"
        assert not world.denied(), f"world {seed}: within their min, and waiting: {world.denied()}"
        stops += len(world.stops)
    assert stops > WORLDS // 20, "hardly any world had a reclaim"


@pytest.mark.parametrize("seed", [939, 3142])
def test_a_queue_that_waits_for_one_model_reclaims_another_where_nothing_of_the_first_can_be_had(seed):
    """With `when-can-preempt: MayStopSearch`, and borrowers of what all models share on the other model alone."""
    assert not play(seed).denied()
