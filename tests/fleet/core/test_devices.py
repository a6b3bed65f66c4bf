"""Every resource that is a GPU counts as one, of whatever vendor; parts of GPUs count as what they are parts of."""

import pytest

from fleet.core import devices

SHARED = {"aliyun.com/gpu-mem": 128, "aliyun.com/gpu-count": 8, "cpu": 96_000}
"""What a node of 8 GPUs of 16 GiB offers whose memory is shared."""


@pytest.mark.parametrize(
    "resource",
    [
        *("nvidia.com/gpu", "amd.com/gpu", "aliyun.com/gpu", "metax-tech.com/gpu", "mthreads.com/gpu"),
        *("huawei.com/Ascend910", "huawei.com/Ascend310P", "nvidia.com/mig-3g.40gb", "cambricon.com/mlu"),
    ],
)
def test_it_counts_gpus_of_every_vendor_and_slices_of_them(resource):
    assert devices.count({resource: 4, "cpu": 8_000, "pods": 1}) == 4


@pytest.mark.parametrize(
    "resource", ["cpu", "memory", "rdma/hca", "nvidia.com/gpumem", "aliyun.com/gpu-core.percentage"]
)
def test_it_counts_nothing_else(resource):
    assert devices.count({resource: 4}) == 0


def test_a_node_whose_gpus_share_their_memory_has_as_many_as_it_says_and_uses_what_its_pods_fill():
    assert devices.count(SHARED) == 8
    assert devices.count({"aliyun.com/gpu-mem": 24}, SHARED) == 2


def test_a_pod_that_asks_for_memory_has_a_part_of_one_gpu():
    assert devices.count({"aliyun.com/gpu-mem": 3, "cpu": 1_000}) == 1


def test_an_operator_adds_resources():
    assert devices.count({"example.com/chip-x": 2}) == 0
    devices.add(["example.com/chip-*"])
    try:
        assert devices.count({"example.com/chip-x": 2, "nvidia.com/gpu": 1}) == 3
    finally:
        devices.add(())
    assert devices.count({"example.com/chip-x": 2}) == 0
