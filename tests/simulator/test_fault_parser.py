"""Faults and scenarios as people write them, and shapes."""

from pathlib import Path

import pytest

from simulator.fault_parser import BadFault, Fault, parse, scenario
from simulator.shape import BadShape
from simulator.shape import parse as parse_shape


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("away", Fault("away")),
        ("slow 0.5", Fault("slow", 0.5)),
        ("flaky 0.2", Fault("flaky", 0.2)),
        ("stale on", Fault("stale", 1.0)),
        ("node-down n1", Fault("node-down", 0.0, "n1")),
        ("crash-pod ai/p", Fault("crash-pod", 1.0, "ai/p")),
        ("crash-pod ai/p 137", Fault("crash-pod", 137.0, "ai/p")),
        ("deny ai/default", Fault("deny", target="ai/default")),
        ("reclaim n1", Fault("reclaim", 120.0, "n1")),
        ("reclaim n1 5m", Fault("reclaim", 300.0, "n1")),
    ],
)
def test_it_reads_faults(words: str, fault: Fault) -> None:
    assert parse(words.split()) == fault


@pytest.mark.parametrize(
    "words", ["", "explode", "slow", "slow soon", "flaky 2", "stale maybe", "crash-pod p", "reclaim", "reclaim n1 soon"]
)
def test_it_refuses_what_is_no_fault(words: str) -> None:
    with pytest.raises(BadFault):
        parse(words.split())


def test_it_reads_a_scenario_in_order_of_time() -> None:
    text = "- {at: 1m, member: south, fault: back}\n- {at: 5s, member: north, fault: slow 0.5}\n"
    steps = scenario(text)
    assert [(step.at_s, step.member, step.fault.kind) for step in steps] == [
        (5, "north", "slow"),
        (60, "south", "back"),
    ]


def test_it_says_which_step_is_wrong() -> None:
    with pytest.raises(BadFault, match="step 1"):
        scenario("- {at: 1s, member: north, fault: away}\n- {at: 2s, fault: away}\n")


def test_it_reads_the_shape_of_a_fleet() -> None:
    text = """
timeScale: 10
members:
  - {name: north, region: eu, zone: eu-1, pools: [{name: gpu, count: 4, gpus: 8, gpuModel: A100, cpu: 96}]}
  - {name: spot, version: v1.20.2, pools: []}
"""
    plan = parse_shape(text)
    north = plan.members[0]
    assert (plan.time_scale, plan.start_delay_s, plan.members[1].version) == (10, 1, "v1.20.2")
    assert north.shape.labels == {"topology.kubernetes.io/region": "eu", "topology.kubernetes.io/zone": "eu-1"}
    assert (north.shape.pools[0].count, north.shape.pools[0].cpu, north.shape.pools[0].gpus) == (4, "96", 8)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("members: []", "at least one member"),
        ("members: [{name: A/b}]", "lower-case"),
        ("members: [{name: a}, {name: a}]", "the same name"),
        ("members: [{name: a, gpus: 1}]", "unknown field 'gpus'"),
        ("members: [{name: a, pools: [{cpu: lots}]}]", "lots"),
        ("{timeScale: 0, members: [{name: a}]}", "not above 0"),
        ("}", "not YAML"),
    ],
)
def test_it_says_what_is_wrong_with_a_shape(text: str, words: str) -> None:
    with pytest.raises(BadShape, match=words):
        parse_shape(text)


def test_it_understands_the_fleet_of_the_demo() -> None:
    text = (Path(__file__).parents[2] / "deploy" / "demo" / "fleet.yaml").read_text()
    assert [member.name for member in parse_shape(text).members] == ["north", "south", "spot"]
