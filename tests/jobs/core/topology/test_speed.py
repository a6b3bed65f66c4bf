"""The speed that is foretold: the eight figures that were measured, and what the ring of a placed gang goes over."""

import pytest

from jobs.core.manifest_fields import Faults
from jobs.core.topology import speed
from jobs.core.topology.speed import MODELS, NODES_APART, ONE_POD, PEERLESS, predict_speed
from tests.jobs.core.topology.builders import VOLTA

MEASURED = {  # model → with links and without: per GPU, total of four
    "vgg16": ((205.1, 820.5), (108.8, 435.2)),
    "resnet50": ((330.5, 1321.9), (313.0, 1252.0)),
}


@pytest.mark.parametrize("model", MEASURED)
def test_it_foretells_all_that_was_measured_within_a_tenth(model: str) -> None:
    for gbs, (each, total) in zip((80.0, PEERLESS), MEASURED[model], strict=True):
        found = predict_speed(MODELS[model], 4, "", gbs)
        assert (found.per_gpu, found.total) == pytest.approx((each, total), rel=0.1)


def test_it_lists_the_places_for_so_many_gpus_fastest_first() -> None:
    assert speed.DGX1.links == VOLTA
    assert speed.places(4)[0] == ("NVLink ring of GPUs 0,1,2,3 of a DGX-1", 80.0)
    assert [gbs for _, gbs in speed.places(16)] == [ONE_POD, PEERLESS, NODES_APART]


@pytest.mark.parametrize(
    ("nodes", "each", "gbs"),
    [
        ({"worker": [["a", 4]]}, 1, PEERLESS),
        ({"worker": [["a", 2], ["b", 2]]}, 1, NODES_APART),
        ({"worker": [["a", 1]]}, 8, ONE_POD),
        ({"worker": [["a", 1]]}, 1, None),
    ],
    ids=["one node", "two nodes", "one pod", "one GPU"],
)
def test_the_ring_is_as_fast_as_its_slowest_step(nodes: dict, each: int, gbs: float | None) -> None:
    placement = {"nodes": {"launcher": [["z", 1]], **nodes}}
    found = speed.bus(placement, {"worker": each, "launcher": 0})
    assert (found and found[1]) == gbs


def test_gpus_chosen_by_their_links_are_as_fast_as_their_ring() -> None:
    placement = {"nodes": {"worker": [["a", 4]]}, "gpus": {"a": [4, 5, 6, 7]}, "ring_gbs": 80.0}
    assert speed.bus(placement, {"worker": 1}) == ("the links of GPUs 4,5,6,7 of a", 80.0)


def test_a_job_names_its_model_or_says_what_it_weighs() -> None:
    faults = Faults()
    assert speed.parse_training({"convoy.dev/model": "VGG16"}, faults) == MODELS["vgg16"]
    assert speed.parse_training({"convoy.dev/model": "llama"}, faults) is None
    own = {"convoy.dev/step-seconds": "0.5", "convoy.dev/gradient-bytes": "2e9", "convoy.dev/batch-per-gpu": "8"}
    found = speed.parse_training(own, faults)
    assert found and (found.step.seconds, found.step.gradients, found.batch) == (0.5, 2e9, 8)
    assert not faults.found


def test_a_weight_that_is_none_is_told() -> None:
    faults = Faults()
    speed.parse_training({"convoy.dev/step-seconds": "-1"}, faults)
    assert [fault.detail for fault in faults.found] == [
        "must be a number above 0, not '-1'",
        "says nothing without convoy.dev/gradient-bytes",
    ]
