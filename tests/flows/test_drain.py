"""A big gang gets its turn although small ones keep coming: nodes are kept for it, and lent to who is gone in time."""

from dataclasses import replace

import pytest

from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def impatient(settings):
    settings.CONVOY_CYCLE = replace(settings.CONVOY_CYCLE, reservation_patience_s=0)


def one_node(name: str, duration: str) -> str:
    return pytorch_job(name, workers=0, gpus=4, duration=duration)


def says(world, name: str, words: str) -> bool:
    return words in ((world.job(name).reason or {}).get("message") or "")


def test_nodes_are_kept_for_a_big_gang_and_lent_to_those_who_are_gone_in_time(world):
    world.member("north", 4, 4)
    world.apply(POLICY, one_node("holder", "10h"))
    world.expect("holder", "Running")
    world.apply(pytorch_job("big", workers=1, gpus=4, duration="10h"))
    world.until(lambda: says(world, "big", "2 nodes are kept for it"), "big is told of its nodes")
    world.apply(one_node("long", "20h"), one_node("short", "1m"))
    world.expect("short", "Succeeded")
    kept = "keeps 2 nodes for a gang that comes first until it starts, expected at "
    world.until(lambda: says(world, "long", kept), "long is told for whom nodes are kept")
    world.delete("holder")
    world.expect("big", "Running")
    assert world.job("long").attempt == 0
