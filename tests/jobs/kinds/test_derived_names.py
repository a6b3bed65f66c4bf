"""A job whose pods or Services could have no name in any member is faulty, and the fault names the limit."""

from pathlib import Path

import pytest
import yaml

from jobs.kinds import derived_names, registry
from tests.support.world import pytorch_job

EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"
LONGEST = {"pytorchjob": 63 - len("-master-0"), "rayjob": 47, "job": 63}


def example(name: str) -> dict:
    path = EXAMPLES / f"{name}.yaml"
    documents = yaml.safe_load_all(path.read_text() if path.exists() else pytorch_job("llama", workers=1))
    return next(each for each in documents if registry.find(each["apiVersion"], each["kind"]))


def details(document: dict, name: str) -> list[str]:
    document["metadata"]["name"] = name
    kind = registry.find(document["apiVersion"], document["kind"])
    return [fault.detail for fault in derived_names.faults(kind, document, kind.read(document).roles)]


@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.glob("*job*.yaml")) + [EXAMPLES / "sparkapplication.yaml"], ids=lambda p: p.stem
)
def test_it_takes_every_kind_with_a_short_name_and_none_whose_names_are_too_long(path):
    document = example(path.stem)
    assert details(document, "llama") == []
    [detail] = details(document, "a" * 64)
    assert "has 64 letters and may have at most" in detail


@pytest.mark.parametrize("stem", ["pytorchjob", "rayjob", "job"])
def test_it_takes_exactly_the_longest_name_whose_derived_names_can_exist(stem):
    document = example(stem)
    assert details(document, "a" * LONGEST[stem]) == []
    [detail] = details(document, "a" * (LONGEST[stem] + 1))
    assert f"at most {LONGEST[stem]}:" in detail


def test_it_counts_the_digits_of_the_last_replica():
    document = example("pytorchjob")
    document["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 101
    assert details(document, "a" * (63 - len("-worker-100"))) == []
    assert "-worker-100" in details(document, "a" * (64 - len("-worker-100")))[0]


@pytest.mark.parametrize("name", ["7b-train", "llama.v2"])
def test_it_refuses_names_that_no_service_can_have_where_services_are_made(name):
    assert "Services are named after it" in details(example("pytorchjob"), name)[0]
    assert details(example("job"), name) == []
