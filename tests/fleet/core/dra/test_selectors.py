"""Which devices the selectors of a class choose, in the part of CEL that is known."""

import pytest

from fleet.core.dra.selectors import Device, Unknown, parse

GIB = 2**30
A100 = Device(
    "gpu.nvidia.com",
    {"gpu.nvidia.com": {"type": "gpu", "productName": "NVIDIA A100", "index": 3, "shared": False}},
    {"gpu.nvidia.com": {"memory": 80 * GIB}},
)
OF = "device.attributes['gpu.nvidia.com']"


@pytest.mark.parametrize(
    ("expression", "selects"),
    [
        (f"device.driver == 'gpu.nvidia.com' && {OF}.type == 'gpu'", True),
        (f"device.driver == 'gpu.nvidia.com' && {OF}.type == 'mig'", False),
        (f'{OF}["productName"].startsWith("NVIDIA") && {OF}.index in [1, 3]', True),
        ("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0", True),
        ("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('96Gi')) >= 0", False),
        (f"!({OF}.shared) && ({OF}.index < 3 || {OF}.index >= 3)", True),
        ("'gpu.nvidia.com' in device.attributes && !has(device.attributes['gpu.amd.com'].type)", True),
        (f"{OF}.missing == 1", False),
        (f"!({OF}.missing == 1)", False),
        (f"{OF}.missing == 1 || device.driver == 'gpu.nvidia.com'", True),
        (f"{OF}.productName", False),
        (f"{OF}.productName > 3", False),
    ],
)
def test_it_selects_as_cel_does(expression, selects):
    assert parse(expression)(A100) is selects


@pytest.mark.parametrize(
    "expression",
    ["", "device.driver.matches('gpu.*')", "true &&", "device..driver", "'open", "(" * 50 + "true" + ")" * 50]
    + ["device.driver == 'a' ? true : false", "quantity('much') == 1", "x" * 20_000, "!" * 5000 + "true"]
    + ["9" * 5000 + " == 1", f"quantity('{'9' * 5000}') == 1", "device" + ".a" * 5000],
)
def test_what_is_not_known_is_said_and_never_guessed(expression):
    with pytest.raises(Unknown):
        parse(expression)


def test_the_deepest_that_is_known_is_evaluated():
    inner = "device"
    for _ in range(40):
        inner = f"(false || true && {inner}{'.a' * 8} == 1)"
    assert parse(inner)(A100) is False
