"""A node's link matrix as its device plugin writes it, read into a board; checked against the simulated plugin's own."""

import pytest

from jobs.core.topology import gpu_links
from jobs.core.topology.gpu_links import Devices
from simulator.node.gpu_topology import config_map
from tests.jobs.core.topology.builders import BOARD


def devices(model: str, gpus: int = 8) -> Devices:
    found = gpu_links.parse_gpu_links(
        config_map({"metadata": {"name": "n", "labels": {"nvidia.com/gpu.product": model}}}, gpus)
    )
    assert found is not None and found.node == "n"
    return found


def test_a_dgx_1_is_read_as_what_it_is():
    found = devices("Tesla-V100-SXM2-16GB")
    assert found.board() == BOARD
    assert found.links[0][:4] == ("N-A", "NV1", "NV1", "NV2") and found.bandwidth[0][3] == pytest.approx(96.4)


def test_it_chooses_the_fast_quad_and_not_the_first_four():
    board = devices("Tesla-V100-SXM2-16GB").board()
    assert board.best({0, 1, 4, 5, 6, 7}, 4) == (4, 5, 6, 7) and board.ring((4, 5, 6, 7)) == 80
    assert board.ring((0, 1, 4, 5)) == 40


def test_gpus_behind_a_switch_are_alike():
    assert devices("NVIDIA-A100-SXM4-80GB").board().uniform
    assert devices("NVIDIA-H100-80GB-HBM3").board("NVIDIA-H100-80GB-HBM3").link_gbs == 20.6


def test_gpus_without_links_know_their_socket():
    board = devices("Tesla-T4", 4).board()
    assert board.sockets == (0, 0, 1, 1) and board.ring((0, 1)) == 10 and board.ring((1, 2)) == 6


def test_what_a_member_tells_is_not_trusted_to_be_sound():
    for data in ({}, {"linkType": "no"}, {"linkType": "[[1],2]"}, {"linkType": '[["N-A"],["NV1","N-A"]]'}):
        assert gpu_links.parse_gpu_links({"metadata": {"labels": {"nodename": "n"}}, "data": data}) is None
    endless = {"linkType": '[["N-A"]]', "bandwidth": "[[NaN]]"}
    known = gpu_links.parse_gpu_links({"metadata": {"labels": {"nodename": "n"}}, "data": endless})
    assert known and known.bandwidth == ()
    odd = {"linkType": '[["N-A","NV?"],["SYS","N-A"]]', "bandwidth": '[["x"]]', "devices": '{"0":"Sick","a":"b"}'}
    found = gpu_links.parse_gpu_links({"metadata": {"labels": {"nodename": "n"}}, "data": odd})
    assert found and found.healthy == {1} and found.bandwidth == () and found.board().ring((0, 1)) == 6


def test_it_tells_which_gpus_a_pod_was_given():
    pod = {"metadata": {"annotations": {"topology.kubernetes.io/gpu-group": "4,5"}}}
    assert gpu_links.given(pod) == (4, 5) and gpu_links.given({}) == ()
    assert gpu_links.given({**pod, "status": {"phase": "Succeeded"}}) == ()


def test_a_gang_asks_a_node_for_what_its_pods_there_ask_together():
    nodes = {"launcher": [("a", 1)], "worker": [("a", 2), ("b", 1), ("a", 1)]}
    assert gpu_links.wanted(nodes, {"worker": 2, "launcher": 0}) == {"a": 6, "b": 2}
