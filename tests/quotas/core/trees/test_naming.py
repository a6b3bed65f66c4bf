"""Names of queues: one DNS label each, whatever the path."""

from random import Random

import pytest

from fleet.kube.names import label_fault
from quotas.core.trees.naming import queue_name


@pytest.mark.parametrize(
    "path", ["root", "root/child-2", "root/Team_A/x.y", "root/" + "deep-/" * 40, "root/" + "a" * 57]
)
def test_it_is_a_label(path):
    assert label_fault(queue_name(path, Random(1))) == ""


def test_it_keeps_paths_that_read_alike_apart():
    assert len({queue_name("root/a-b", Random(seed)) for seed in range(20)}) == 20
