"""Which conditions and taints of a node say that it is faulty, and which every healthy node may carry."""

import pytest

from fleet.core.members import observed
from fleet.core.node_problems import LONGEST, problem_of


def condition(name, status="True", reason=""):
    return {"type": name, "status": status, "reason": reason}


def taint(key, effect="NoSchedule"):
    return {"key": key, "value": "true", "effect": effect}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (condition("KernelDeadlock", reason="DockerHung"), "condition KernelDeadlock (DockerHung)"),
        (condition("GpuMemWatch", reason="GpuMemWatchIsNotHealthy"), "GpuMemWatch"),
        (condition("SysLogsXIDError"), "SysLogsXIDError"),
        (condition("GPUMissing", reason="GPUMissing"), "condition GPUMissing"),
        (condition("NVLinkStatusInactive"), "NVLinkStatusInactive"),
        (condition("AcceleratedHardwareReady", "False", "NvidiaXID79Error"), "NvidiaXID79Error"),
        (condition("NebiusGPUError"), "NebiusGPUError"),
    ],
)
def test_it_reads_what_monitors_of_nodes_say(said, words):
    assert words in problem_of([condition("Ready"), said], [])


@pytest.mark.parametrize(
    "said",
    [
        condition("Ready", "False"), condition("MemoryPressure"), condition("DiskPressure"), condition("NetworkUnavailable"),
        condition("KernelDeadlock", "False"), condition("KernelDeadlock", "Unknown"), condition("GpuMemWatch", "False"),
        condition("AcceleratedHardwareReady"), condition("GPUHealthy"), condition("GPUDriverReady", "False"),
        condition("NVSwitchNonFatalError"), condition("EtcdIsVoter"), condition("VMEventScheduled"), {}, {"type": 7}, None, "x",
    ],
)  # fmt: skip
def test_it_takes_nothing_else_for_a_fault(said):
    assert problem_of([said], []) == ""


@pytest.mark.parametrize("key", ["nvidia.com/gpu-xid-error", "gpu.health/memory-error", "amd.com/gpu-unhealthy"])
def test_it_reads_taints_of_gpu_health(key):
    assert problem_of(None, [taint(key)]) == f"taint {key}"


@pytest.mark.parametrize(
    "given",
    [taint("nvidia.com/gpu"), taint("amd.com/gpu", "NoExecute"), taint("nvidia.com/gpu-error", "PreferNoSchedule"),
     taint("node.kubernetes.io/not-ready"), taint("convoy.dev/excluded"), {"key": None}],
)  # fmt: skip
def test_taints_that_dedicate_nodes_or_say_what_is_known_are_none(given):
    assert problem_of([], [given]) == ""


def test_what_it_keeps_is_bounded_and_the_same_in_any_order():
    many = [condition(f"Gpu{n:03}Error", reason="x" * 900) for n in range(90)]
    words = problem_of(many, [])
    assert len(words) <= LONGEST and words == problem_of(many[::-1], [])


def test_it_is_kept_of_an_observed_node():
    status = {"conditions": [condition("Ready"), condition("ReadonlyFilesystem")]}
    manifest = {"metadata": {"name": "n"}, "spec": {"taints": [taint("nvidia.com/gpu-error")]}, "status": status}
    assert observed.node(manifest).problem == "condition ReadonlyFilesystem, taint nvidia.com/gpu-error"
