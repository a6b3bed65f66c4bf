"""Domains, rank order and predicted speed: the figures of the ConfigMap and of the two models that were measured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.manifest_fields import Faults
from jobs.core.topology import network
from jobs.core.topology.network import Step

TABLE = "\n".join(f"asw-{n % 4} psw-0 192.168.0.{n}" for n in range(10))
NODES = [f"192.168.0.{n}" for n in range(10)]
BATCH = 64
VGG = Step(BATCH / 205.1, 4 * 138_357_544)
RESNET = Step(BATCH / 330.5, 102.2e6)


def places(text: str = TABLE) -> dict[str, tuple[str, str]]:
    faults = Faults()
    found = network.parse_network(text, "data.topology_config", faults)
    assert not faults.found
    return found


def test_it_puts_ranks_under_one_switch_next_to_each_other() -> None:
    order = network.rank_nodes(NODES, places())
    assert [node.rpartition(".")[2] for node in order] == list("0481592637")
    assert network.count_crossings(NODES, places()) == 10
    assert network.count_crossings(order, places()) == 4


def test_it_begins_with_the_switch_of_rank_0_then_the_largest() -> None:
    found = places("a p x\nb p y1\nc p z1\nc p z2\nd q w1\nd q w2\nd q w3")
    assert network.rank_nodes(["x", "y1", "w1", "z1", "z2", "w2", "w3"], found) == [
        "x",
        "z1",
        "z2",
        "y1",
        "w1",
        "w2",
        "w3",
    ]


def test_it_puts_addresses_nobody_knows_last() -> None:
    assert network.rank_nodes(["10.0.0.1", *NODES[:2], NODES[4]], places()) == [
        NODES[0],
        NODES[4],
        NODES[1],
        "10.0.0.1",
    ]


@given(st.permutations(NODES))
def test_no_order_of_ranks_crosses_fewer_switches(given_order: list[str]) -> None:
    order = network.rank_nodes(given_order, places())
    assert sorted(order) == sorted(NODES) and network.count_crossings(order, places()) == 4
    assert network.rank_nodes(order, places()) == order


def test_it_says_which_line_of_the_table_to_mend() -> None:
    faults = Faults()
    assert network.parse_network("asw-0 psw-0 a\nasw-0 b\n\nasw-1 psw-0 a", "data.t", faults) == {
        "a": ("psw-0", "asw-0")
    }
    assert [fault.detail.split(" must")[0].split(" puts")[0] for fault in faults.found] == ["line 2", "line 4"]
    network.parse_network(7, "data.t", faults)
    assert "must be text" in faults.found[-1].detail


def test_it_reads_a_domain_from_labels_as_deep_as_they_go() -> None:
    labels = {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/rack": "r", "pod": "p"}
    assert network.domain(labels) == ("z", "", "r")
    assert network.domain({"topology.kubernetes.io/zone": "z"}) == ("z",) and network.domain({}) == ()
    own = network.labels_of({network.OWN_LABELS: "psw=pod bad asw="})
    assert network.domain(labels, own) == ("z", "p", "r")


def test_a_table_says_more_than_labels() -> None:
    assert network.domain({"topology.kubernetes.io/rack": "r"}, place=("p", "a")) == ("", "p", "a")


def test_it_foretells_what_was_measured_on_a_switch_and_across_two() -> None:
    assert [round(step.takes_s(4, 20) * 1000, 1) for step in (VGG, RESNET)] == [312.0, 193.6]
    assert [round(step.reduce_s(4, 1) * 1000) for step in (VGG, RESNET)] == [830, 153]
    assert VGG.takes_s(4, 2.25) == pytest.approx(0.5882, rel=0.002)
    assert RESNET.takes_s(4, 2.25) == pytest.approx(0.2045, rel=0.002)


VGG_SPEED = {10: 205.1, 6: 178.6, 5: 165.8, 4: 149.7, 3: 128.9, 2.25: 108.7, 2: 100.8, 1.25: 72.4, 1: 61.0, 0.5: 34.0}
RESNET_SPEED = {10: 330.5, 4: 330.5, 3: 330.5, 2.25: 312.8, 2: 300.3, 1.25: 247.0, 1: 220.8, 0.5: 144.4}


@pytest.mark.parametrize(("step", "speeds"), [(VGG, VGG_SPEED), (RESNET, RESNET_SPEED)], ids=["vgg16", "resnet50"])
def test_it_foretells_the_speed_for_every_bandwidth(step: Step, speeds: dict[float, float]) -> None:
    assert {gbs: BATCH / step.takes_s(4, gbs) for gbs in speeds} == pytest.approx(speeds, rel=0.002)


@pytest.mark.parametrize(("step", "one_node", "two_nodes"), [(VGG, 991.92, 200.47), (RESNET, 1471.55, 745.38)])
def test_one_bandwidth_explains_both_models_split_over_two_nodes(step: Step, one_node: float, two_nodes: float) -> None:
    """Images a second of four GPUs together; without overlap the two give 0.81 and 0.90 GB/s."""
    waited = 4 * BATCH / two_nodes - 4 * BATCH / one_node
    assert step.reduce_s(4, 1) / waited == pytest.approx({VGG: 0.81, RESNET: 0.90}[step], abs=0.01)


def test_topology_speeds_up_the_model_with_more_to_send() -> None:
    assert VGG.speedup(4, 20, worst_gbs=2.25) == pytest.approx(1.89, abs=0.01)
    assert RESNET.speedup(4, 20, worst_gbs=2.25) == pytest.approx(1.06, abs=0.01)
