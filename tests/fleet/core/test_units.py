"""Requests in whole units, pod by pod."""

import pytest

from fleet.core import units
from fleet.kube.quantities import QuantityError


def container(restart="", limits=None, **requests):
    return {"resources": {"requests": requests, "limits": limits or {}}, "restartPolicy": restart}


def test_it_counts_cpu_in_thousandths_and_the_rest_in_units():
    assert units.amounts({"cpu": "1.5", "memory": "1Ki", "nvidia.com/gpu": 8}) == {
        "cpu": 1500,
        "memory": 1024,
        "nvidia.com/gpu": 8,
    }


def test_it_refuses_an_amount_no_resource_can_have():
    with pytest.raises(QuantityError):
        units.amounts({"cpu": "1e400"})


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        pytest.param({"containers": [container(cpu="1"), container(cpu="500m")]}, 1500, id="containers run together"),
        pytest.param({"containers": [container(limits={"cpu": 2})]}, 2000, id="limits stand in for requests"),
        pytest.param({"containers": [container(cpu="1", limits={"cpu": 2})]}, 1000, id="requests before limits"),
        pytest.param(
            {"containers": [container(cpu=1)], "initContainers": [container(cpu=3)]}, 3000, id="a large init container"
        ),
        pytest.param(
            {"containers": [container(cpu=1)], "initContainers": [container(cpu=1, restart="Always")]},
            2000,
            id="a restartable init container stays",
        ),
        pytest.param(
            {
                "containers": [container(cpu=1)],
                "initContainers": [container(cpu=2, restart="Always"), container(cpu=4)],
            },
            6000,
            id="init containers run beside earlier restartable ones",
        ),
        pytest.param(
            {
                "containers": [container(cpu=1)],
                "initContainers": [container(cpu=2), container(cpu=2, restart="Always")],
            },
            3000,
            id="but not beside later ones",
        ),
        pytest.param({"containers": [container(cpu=1)], "overhead": {"cpu": "250m"}}, 1250, id="overhead"),
    ],
)
def test_it_asks_for_the_most_a_pod_ever_uses_at_once(spec, cpu):
    assert units.pod_request(spec) == {"cpu": cpu, "pods": 1}
