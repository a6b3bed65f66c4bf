"""How many devices of each class the nodes of a member have, and how many are taken."""

import pytest

from fleet.core.dra import classes, inventory
from fleet.core.dra.inventory import DeviceInventory
from tests.support.device_claims import CLASS, GPUS, allocated, device_class, resource_slice

CLAIM = ("team", "llama-0-gpus")


@pytest.fixture
def devices():
    known = DeviceInventory(is_on=True)
    known.update_classes({CLASS: inventory.read_class(device_class())}, listed=True)
    slices = [inventory.read_slice(resource_slice(node, 4)) for node in ("n1", "n2")]
    known.update_slices({each.node: each for each in slices}, listed=True)
    known.touched.clear()
    return known


def allocate(devices, key, *taken):
    devices.update_claims({key: inventory.read_claim({"status": allocated(*taken)})}, listed=False)


def test_a_class_counts_its_devices_on_each_node_and_those_that_claims_have(devices):
    assert devices.of_node("n1") == ({GPUS: 4}, {})
    allocate(devices, CLAIM, ("n1", "gpu-0"), ("n1", "gpu-3"))
    assert devices.of_node("n1") == ({GPUS: 4}, {GPUS: 2}) and devices.touched == {"n1"}
    assert devices.is_allocated(CLAIM) and devices.of_node("n2") == ({GPUS: 4}, {})
    devices.update_claims({}, [CLAIM], listed=False)
    assert devices.of_node("n1") == ({GPUS: 4}, {}) and not devices.is_allocated(CLAIM)


def test_one_device_of_two_claims_is_taken_once_until_both_are_gone(devices):
    allocate(devices, CLAIM, ("n1", "gpu-0"))
    allocate(devices, ("other", "shared"), ("n1", "gpu-0"))
    assert devices.of_node("n1")[1] == {GPUS: 1}
    devices.update_claims({}, [CLAIM], listed=False)
    assert devices.of_node("n1")[1] == {GPUS: 1}
    devices.update_claims({}, listed=True)
    assert devices.of_node("n1")[1] == {}


def test_a_claim_seen_before_its_slice_counts_when_the_slice_comes(devices):
    allocate(devices, CLAIM, ("n3", "gpu-1"))
    devices.update_slices({"n3": inventory.read_slice(resource_slice("n3", 2))}, listed=False)
    assert devices.of_node("n3") == ({GPUS: 2}, {GPUS: 1}) and "n3" in devices.touched


def test_slices_of_a_former_generation_of_their_pool_do_not_count(devices):
    devices.update_slices({"newer": inventory.read_slice(resource_slice("n1", 3, generation=2))}, listed=False)
    assert devices.of_node("n1")[0] == {GPUS: 3}


def test_devices_with_a_taint_and_those_of_a_class_that_is_not_understood_do_not_count(devices):
    tainted = resource_slice("n1", 4, taints=[{"key": "broken", "effect": "NoSchedule"}])
    devices.update_slices({"n1": inventory.read_slice(tainted)}, listed=False)
    assert devices.of_node("n1") == ({}, {})
    odd = inventory.read_class(device_class("odd", "device.driver.matches('gpu.*')"))
    devices.update_classes({"odd": odd, "all": inventory.read_class(device_class("all", "true"))}, listed=False)
    assert devices.of_node("n2")[0] == {GPUS: 4}


def first_of_slice(count: int):
    few = device_class(
        "few", f"device.driver == '{CLASS}' && device.attributes['{CLASS}'].index < {count} && true && true"
    )
    return {"few": inventory.read_class(few)}


def test_of_classes_that_have_devices_of_a_node_in_common_only_the_narrowest_has_any_there(devices):
    """Else jobs of both would be placed on the same devices before either has allocated them."""
    few = classes.resource_of("few")
    devices.update_slices({"n2": inventory.read_slice(resource_slice("n2", 8))}, listed=False)
    devices.update_classes(first_of_slice(2), listed=False)
    assert devices.of_node("n1") == devices.of_node("n2") == ({few: 2}, {})
    allocate(devices, CLAIM, ("n1", "gpu-0"), ("n1", "gpu-3"))
    assert devices.of_node("n1") == ({few: 2}, {few: 1})
    devices.update_classes(first_of_slice(0), listed=False)
    assert devices.of_node("n1") == ({GPUS: 4}, {GPUS: 2})


def test_a_class_counts_on_the_nodes_where_no_narrower_one_has_a_device(devices):
    plain = resource_slice("n2", 8)
    for each in plain["spec"]["devices"]:
        del each["attributes"]["index"]
    devices.update_slices({"n2": inventory.read_slice(plain)}, listed=False)
    devices.update_classes(first_of_slice(9), listed=False)
    assert devices.of_node("n1")[0] == {classes.resource_of("few"): 4} and devices.of_node("n2")[0] == {GPUS: 8}


def test_classes_whose_devices_are_parts_of_the_same_hardware_do_not_both_count(devices):
    shared = resource_slice("n1", 3, consumesCounters=[{"counterSet": "gpu-0", "counters": {}}])
    first, rest = (f"device.attributes['{CLASS}'].index {sign}" for sign in ("== 0", "> 0"))
    read = {name: inventory.read_class(device_class(name, by)) for name, by in (("whole", first), ("part", rest))}
    devices.update_slices({"n1": inventory.read_slice(shared)}, listed=False)
    devices.update_classes(read, listed=True)
    assert devices.of_node("n1") == ({classes.resource_of("whole"): 1}, {})


def test_a_member_of_very_many_classes_has_devices_of_the_first_of_them(devices):
    many = {f"c{i:03}": inventory.read_class(device_class(f"c{i:03}", "false")) for i in range(200)}
    devices.update_classes({**many, CLASS: inventory.read_class(device_class())}, listed=True)
    assert devices.of_node("n1") == ({}, {})


def test_parts_of_one_device_count_once_and_are_taken_with_it(devices):
    shared = resource_slice("n1", 2, consumesCounters=[{"counterSet": "gpu-0", "counters": {}}])
    devices.update_slices({"n1": inventory.read_slice(shared)}, listed=False)
    assert devices.of_node("n1") == ({GPUS: 1}, {})
    allocate(devices, CLAIM, ("n1", "gpu-1"))
    assert devices.of_node("n1") == ({GPUS: 1}, {GPUS: 1})


def test_a_member_of_which_a_part_is_not_seen_any_more_has_none(devices):
    devices.switch(on=False)
    assert devices.of_node("n1") == ({}, {}) and devices.touched == {"n1", "n2"}
    devices.switch(on=True)
    assert devices.of_node("n1") == ({GPUS: 4}, {})


@pytest.mark.parametrize(
    "hostile", ["device.driver == " + "9" * 5000, "device" + ".a" * 5000], ids=["number", "members"]
)
def test_a_class_that_no_parser_bears_has_no_devices_and_ends_nothing(devices, hostile):
    devices.update_classes({"odd": inventory.read_class(device_class("odd", hostile))}, listed=False)
    assert devices.of_node("n1")[0] == {GPUS: 4}


@pytest.mark.parametrize(
    "odd", [{}, {"spec": None}, {"spec": {"devices": {}, "pool": []}}, {"spec": {"devices": [None, {}]}}]
)
def test_what_cannot_be_read_is_absent(devices, odd):
    devices.update_slices({"odd": inventory.read_slice(odd)}, listed=False)
    devices.update_classes({"odd": inventory.read_class(odd)}, listed=False)
    assert inventory.read_claim({"status": {"allocation": {"devices": {"results": [None, 3]}}}}) == ()
    assert devices.of_node("n2")[0][GPUS] == 4
