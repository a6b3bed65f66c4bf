"""A kind is complete: this test goes through the registry and names every place that lacks something of a kind.

docs/development/kind.md is the recipe that it checks.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from fleet.kube import crds
from fleet.kube.schema import builtin
from jobs.kinds import registry
from jobs.kinds.base import Kind
from jobs.kubeapi.kinds import kinds as served_kinds
from jobs.services.submission import schema_completion
from simulator.operators.played import PLAYED

ROOT = Path(__file__).parents[3]
EXAMPLES = [
    document
    for file in [*sorted((ROOT / "docs" / "examples").glob("*.yaml")), ROOT / "deploy" / "demo" / "pytorchjob.yaml"]
    for document in yaml.safe_load_all(file.read_text())
]
TEXTS = {name: (ROOT / name).read_text() for name in ("README.md", "docs/kubectl.md")}


def key(kind: Kind) -> tuple[str, str]:
    return kind.resource.api_version, kind.resource.kind


def lacking(kind: Kind) -> Iterator[str]:
    """What is missing, each with the place where it belongs."""
    resource = kind.resource
    if crds.document(resource) is None and not builtin.known(resource):
        yield f"fleet/kube/crds/{resource.plural}.yaml: the definition, which explains the kind and that members are given"
    if key(kind) not in {(each.get("apiVersion"), each.get("kind")) for each in EXAMPLES}:
        yield f"docs/examples/{resource.kind.lower()}.yaml: an example that runs on the demo fleet"
    policy = next(each for each in EXAMPLES if each["kind"] == "PropagationPolicy")
    if key(kind) not in {(each["apiVersion"], each["kind"]) for each in policy["spec"]["resourceSelectors"]}:
        yield "docs/examples/policy.yaml: a selector of the kind"
    if resource not in PLAYED:
        yield "simulator/operators: an operator that plays the kind in simulated clusters"
    if key(kind) not in {(each.api_version, each.kind) for each in schema_completion.kinds()}:
        yield "jobs/services/submission/schema_completion.py: the kind in the list at /api/v1/schemas/"
    if resource not in {each.served.resource for each in served_kinds()}:
        yield "jobs/kubeapi/kinds.py: the kind at the Kubernetes-style API"
    for name, text in TEXTS.items():
        if resource.kind not in text:
            yield f"{name}: the name of the kind"


@pytest.mark.parametrize("kind", registry.everything(), ids=lambda kind: "/".join(key(kind)))
def test_no_place_lacks_a_kind(kind):
    missing = "\n  ".join(lacking(kind))
    assert not missing, f"{' '.join(key(kind))} is missing in\n  {missing}"


def test_a_kind_that_is_nowhere_is_missed_everywhere():
    """The check itself: of a kind that is only imagined, every place is named."""

    class Imagined(type(registry.kind_of("kubeflow.org/v1", "JAXJob"))):
        resource = type(registry.kind_of("kubeflow.org/v1", "JAXJob").resource)("x.example", "v1", "y", "Imagined")

    assert len(list(lacking(Imagined()))) == 8


@pytest.mark.parametrize("kind", registry.everything(), ids=lambda kind: "/".join(key(kind)))
def test_what_a_definition_says_of_scaling_is_what_the_kind_says(kind):
    """Members and the fleet must count the same pods; a kind may be scaled in the fleet alone."""
    for definition in crds.definitions():
        spec = definition["spec"]
        for version in spec["versions"]:
            named = (f"{spec['group']}/{version['name']}", spec["names"]["kind"])
            if named == key(kind) and (scale := version.get("subresources", {}).get("scale")):
                assert scale == kind.scale


def test_pods_of_every_kind_are_kept_off_excluded_nodes_beside_what_they_ask_of_nodes_themselves():
    excluded = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["a", "b"]}
    kept = set()
    for manifest in json.loads(json.dumps(EXAMPLES)):
        kind = registry.find(manifest["apiVersion"], manifest["kind"])
        if kind is not None and (templates := list(kind.templates(manifest))):
            kind.keep_off_nodes(manifest, ["b", "a"])
            kept.add(kind.resource.kind)
            assert json.dumps(manifest).count(json.dumps(excluded)) == len(templates), manifest["kind"]
    # The pods of a TrainJob come from its runtime, which is written into the copy before.
    assert kept == {kind.resource.kind for kind in registry.everything()} - {"TrainJob"}
