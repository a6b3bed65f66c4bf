"""The definitions of the kinds of training: they can be served, explain what they leave open, and lose nothing people write."""

from pathlib import Path

import pytest
import yaml

from fleet.kube import crds
from fleet.kube.resources import Resource
from fleet.kube.schema import builtin, structural
from fleet.kube.schema.definitions import schema_faults
from jobs.kinds import registry

EXAMPLES = [
    document
    for file in sorted(Path("docs/examples").glob("*.yaml"))
    for document in yaml.safe_load_all(file.read_text())
    if document and document["apiVersion"] != "batch/v1" and registry.find(document["apiVersion"], document["kind"])
]
KINDS = [kind.resource for kind in registry.everything() if not builtin.known(kind.resource)]


@pytest.mark.parametrize("definition", crds.definitions(), ids=lambda each: each["metadata"]["name"])
def test_it_can_be_served(definition):
    for version in definition["spec"]["versions"]:
        assert not list(schema_faults(version["schema"]["openAPIV3Schema"], "schema"))


@pytest.mark.parametrize("resource", KINDS, ids=str)
def test_it_knows_every_kind_of_the_fleet(resource):
    assert crds.document(resource)["properties"]["spec"]["properties"]
    assert crds.schema(resource).fields["spec"].fields


@pytest.mark.parametrize("document", EXAMPLES, ids=lambda each: each["kind"] + each["metadata"]["name"])
def test_it_loses_nothing_of_the_examples(document):
    resource = registry.kind_of(document["apiVersion"], document["kind"]).resource
    assert not structural.unknown_fields(crds.schema(resource), document)
    assert structural.pruned(crds.kept(resource), document) == document


def test_it_drops_what_nobody_knows_but_nothing_in_pods():
    job = Resource("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob")
    role = {"replicas": 1, "colour": "red", "template": {"spec": {"newField": 1}}}
    left = {"replicas": 1, "template": {"spec": {"newField": 1}}}
    given = {"spec": {"pytorchReplicaSpecs": {"Worker": role}, "shape": "round"}}
    assert structural.pruned(crds.kept(job), given) == {"spec": {"pytorchReplicaSpecs": {"Worker": left}}}
    worker = "spec.pytorchReplicaSpecs.Worker"
    told = structural.unknown_fields(crds.schema(job), given)
    assert set(told) == {f"{worker}.colour", f"{worker}.template.spec.newField", "spec.shape"}
