"""What the placement cache remembers of shapes is what a search finds, whatever happened in between."""

from datetime import UTC, datetime
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.core.admission.backfill_policy import ReservedNodes
from jobs.core.admission.placement_cache import PlacementCache, Reservation
from jobs.core.gang.types import CapacityHold
from jobs.core.placement.engine import Engine
from tests.jobs.core.builders import GPU, NOON, cluster, gang, node
from tests.support.examples import examples

SITES = {"north": cluster("north", [node(4), node(2)]), "south": cluster("south", [node(3)])}
GANGS = [gang(f"of {gpus}", masters=0, workers=workers, gpus=gpus) for gpus in (1, 2, 4) for workers in (1, 2, 3)]
names = st.sampled_from(["north-0", "north-1", "south-0"])
keys = st.integers(0, 3)
changes = st.one_of(
    st.tuples(st.just("hold"), keys, names, st.integers(0, 4)),
    st.tuples(st.just("release"), keys),
    st.tuples(st.just("node"), names, st.integers(0, 4)),
    st.tuples(st.just("gone"), names),
    st.tuples(st.just("reserve"), names),
    st.tuples(st.just("unreserve")),
    st.tuples(st.just("lose"), st.sampled_from(["north", "south"])),
    st.tuples(st.just("find"), st.sampled_from(["north", "south"])),
    st.tuples(st.just("requeue")),
)


def change(cache: PlacementCache, what: str, *how) -> None:
    match what, *how:
        case "hold", key, name, gpus:
            cache.hold(CapacityHold(key, name[:5], {GPU: gpus}, (({GPU: gpus}, (name,)),)))
        case "release", key:
            cache.release(key)
        case "node", name, gpus:
            cluster_of = SITES[name[:5]]
            facts = next(each for each in cluster_of.nodes if each.name == name)
            cache.set_node(name[:5], type(facts)(name, {**facts.allocatable, GPU: gpus}))
        case "gone", name:
            cache.drop_node(name[:5], name)
        case "reserve", name:
            hold = CapacityHold("reserved", name[:5], {GPU: 2}, (({GPU: 2}, (name,)),))
            reserved = ReservedNodes("big", name[:5], (name,), NOON.timestamp() + 60)
            cache.set_reservation(Reservation(gang("big"), reserved, hold, NOON))
        case ("unreserve",):
            cache.set_reservation(None)
        case "lose", name:
            cache.drop_cluster(name)
        case "find", name:
            cache.set_cluster(SITES[name].id, SITES[name].member)
        case ("requeue",):
            cache.requeued(NOON)


def check(cache: PlacementCache) -> None:
    for each in GANGS:
        fits = cache.engine.find(each, each.demand, NOON) is not None
        cache.requeued(NOON)
        assert cache.fits(each.demand, each, (), NOON) is fits


@settings(deadline=None, max_examples=examples(300))
@given(st.lists(changes, max_size=12))
def test_it_answers_as_a_search_does_after_any_changes(stream):
    cache = PlacementCache(SITES.values())
    for each in stream:
        change(cache, *each)
        check(cache)
        with cache.without_reservation():
            free = {each.demand: cache.engine.find(each, each.demand, NOON) is not None for each in GANGS}
            cache.invalidate_all()
            assert {each.demand: cache.fits(each.demand, each, (), NOON) for each in GANGS} == free
        cache.invalidate_all()
        check(cache)


def test_it_searches_once_for_queues_that_ask_alike():
    cache = PlacementCache(SITES.values())
    with patch.object(Engine, "find", autospec=True, side_effect=Engine.find) as find:
        now = datetime(2030, 1, 1, tzinfo=UTC)
        assert all(cache.fits("shape", GANGS[0], (), now) for _ in range(5))
        assert find.call_count == 1
        cache.hold(CapacityHold("held", "north", {GPU: 1}, (({GPU: 1}, ("north-0",)),)))
        assert cache.fits("shape", GANGS[0], (), now) and find.call_count == 2
