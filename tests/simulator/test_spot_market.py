"""The spot market of a pool: deterministic, in the means that were asked for, with bursts and notice; played on a member."""

import itertools
from pathlib import Path
from statistics import mean

import pytest

from fleet.kube.resources import NODES
from fleet.member.client import MemberClient
from simulator import spot_market
from simulator.main import Fleet
from simulator.node.nodes import Pool, Spot
from simulator.shape import BadShape, parse
from tests.simulator.casting import until

CALM = Spot(mean_up_s=86_400, mean_down_s=3_600, notice_s=120, seed=3)
MONTH_S = 30 * 86_400


def played(spot: Spot, nodes: int = 32, until_s: float = MONTH_S):
    steps = spot_market.steps("north", Pool("t4", nodes, spot=spot))
    return list(itertools.takewhile(lambda step: step.at_s < until_s, steps))


def test_it_is_the_same_for_a_seed_and_in_order_of_time_and_another_for_another():
    month = played(CALM)
    assert month == played(CALM) != played(Spot(86_400, 3_600, 120, seed=4))
    assert [step.at_s for step in month] == sorted(step.at_s for step in month)
    first = {step.fault.target: step.at_s for step in reversed(month)}
    few = {step.fault.target: step.at_s for step in reversed(played(CALM, nodes=3))}
    assert few.items() <= first.items()


def test_each_node_goes_with_notice_and_comes_back_in_the_means_that_were_asked_for():
    by_node: dict[str, list] = {}
    for step in played(CALM):
        by_node.setdefault(step.fault.target, []).append(step)
    ups, downs = [], []
    for steps in by_node.values():
        assert [step.fault.kind for step in steps] == ["reclaim", "node-up"] * (len(steps) // 2) + ["reclaim"] * (
            len(steps) % 2
        )
        assert {step.fault.amount for step in steps[::2]} == {120}
        gone = [step.at_s + 120 for step in steps[::2]]
        back = [0.0, *(step.at_s for step in steps[1::2])]
        ups += [end - start for start, end in zip(back, gone, strict=False)]
        downs += [end - start for start, end in zip(gone, back[1:], strict=False)]
    assert mean(ups) == pytest.approx(86_400, rel=0.1)
    assert mean(downs) == pytest.approx(3_600, rel=0.1)


def test_a_burst_takes_its_share_of_the_pool_at_once():
    bursts = Spot(mean_up_s=10**9, mean_down_s=3_600, notice_s=30, bursts_per_day=1, share=0.5, seed=1)
    times: dict[float, int] = {}
    for step in played(bursts):
        if step.fault.kind == "reclaim":
            times[step.at_s] = times.get(step.at_s, 0) + 1
    assert 15 <= len(times) <= 45 and max(times.values()) == 16 and mean(times.values()) > 14


def test_a_market_of_a_file_takes_nodes_of_its_pool_only_and_gives_them_back(tmp_path: Path):
    text = """
timeScale: 100
members:
  - name: north
    pools:
      - {name: gpu, count: 1, gpus: 8}
      - {name: t4, count: 2, gpus: 2, spot: {meanUp: 60s, meanDown: 30s, notice: 20s, seed: 1}}
"""
    fleet = Fleet(tmp_path, parse(text), tmp_path)
    fleet.start()
    try:
        client = MemberClient(fleet.members["north"].access())
        spot = {"north-t4-0", "north-t4-1"}

        def there() -> set[str]:
            nodes = {node["metadata"]["name"]: node for node in client.list(NODES.path())["items"]}
            assert "north-gpu-0" in nodes
            assert all(
                node["metadata"]["labels"]["convoy.dev/capacity"] == "spot"
                for name, node in nodes.items()
                if name in spot
            )
            return spot & nodes.keys()

        until(lambda: there() < spot)
        until(lambda: there() == spot)
        client.close()
    finally:
        fleet.stop()


@pytest.mark.parametrize(
    ("spot", "says"),
    [
        ("{meanUp: 0s}", "meanUp and meanDown are above 0"),
        ("{share: 2}", "share is between 0 and 1"),
        ("{bursts: often}", "bursts: 'often' is not a number a day"),
        ("{notice: soon}", "not a duration: 'soon'"),
        ("{price: 3}", "unknown field 'price'"),
    ],
)
def test_it_says_what_of_a_market_makes_no_sense(spot, says):
    with pytest.raises(BadShape, match=says) as refused:
        parse(f"members: [{{name: north, pools: [{{name: t4, spot: {spot}}}]}}]")
    assert "members[0].pools[0].spot" in str(refused.value)
