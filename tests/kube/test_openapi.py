"""What clients look a server up with: documents for explain, discovery one group at a time and all at once."""

from typing import Any

from fleet.kube import discovery, openapi
from fleet.kube.discovery import Served
from fleet.kube.resources import JOBS, PODS, PYTORCH_JOBS
from fleet.kube.schema import builtin

DOCUMENT = {"type": "object", "properties": {"spec": {"type": "object", "description": "What is wanted."}}}
TRAINING = Served(PYTORCH_JOBS, ("ptj",), subresources=("status", "scale"), document=DOCUMENT)
SERVED = [Served(PODS, ("po",), ("all",), ("status",)), Served(JOBS, subresources=("status",)), TRAINING]


def references(document: Any) -> set[str]:
    if isinstance(document, dict):
        found = {document["$ref"].rpartition("/")[2]} if "$ref" in document else set()
        return found.union(*(references(each) for each in document.values()))
    return set().union(*(references(each) for each in document)) if isinstance(document, list) else set()


def test_it_has_one_document_a_version() -> None:
    assert set(openapi.index(SERVED)["paths"]) == {"api/v1", "apis/batch/v1", "apis/kubeflow.org/v1"}
    assert openapi.document("apis/kubeflow.org/v2", SERVED) is None


def test_it_leaves_no_reference_open() -> None:
    for root in openapi.index(SERVED)["paths"]:
        document = openapi.document(root, SERVED)
        assert document and references(document) <= set(document["components"]["schemas"])


def test_it_describes_a_defined_kind_as_its_definition_does() -> None:
    document = openapi.document("apis/kubeflow.org/v1", SERVED)
    assert document is not None
    schema = document["components"]["schemas"]["PyTorchJob"]
    assert schema["properties"]["spec"]["description"] == "What is wanted."
    identity = {"group": "kubeflow.org", "version": "v1", "kind": "PyTorchJob"}
    assert schema["x-kubernetes-group-version-kind"] == [identity]


def test_it_offers_kubectl_the_parameters_it_looks_for() -> None:
    document = openapi.document("api/v1", SERVED)
    assert document is not None
    patch = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert {each["name"] for each in patch["parameters"]} >= {"dryRun", "fieldValidation", "fieldManager"}


def test_it_documents_what_people_look_up() -> None:
    documents = builtin.documents("Pod")
    assert all(each["description"] for name, each in documents.items() if name in ("Pod", "PodSpec", "Container"))
    assert builtin.metadata_document()["properties"]["labels"]["description"]


def test_it_tells_everything_at_once() -> None:
    found = discovery.aggregated(SERVED)
    groups = {each["metadata"].get("name", ""): each["versions"][0]["resources"] for each in found["items"]}
    assert (found["kind"], set(groups)) == ("APIGroupDiscoveryList", {"", "batch", "kubeflow.org"})
    training = groups["kubeflow.org"][0]
    assert (training["resource"], training["scope"], training["shortNames"]) == ("pytorchjobs", "Namespaced", ["ptj"])
    kinds = {each["subresource"]: each["responseKind"]["kind"] for each in training["subresources"]}
    assert kinds == {"status": "PyTorchJob", "scale": "Scale"}


def test_it_tells_at_once_only_to_those_who_ask_for_that_first() -> None:
    assert discovery.wants_aggregated(f"{discovery.AGGREGATED},application/json")
    assert not discovery.wants_aggregated("application/json")
    assert not discovery.wants_aggregated("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList")


def test_it_says_what_a_scale_is() -> None:
    entries = discovery.resource_list("kubeflow.org/v1", [TRAINING])["resources"]
    scale = next(each for each in entries if each["name"] == "pytorchjobs/scale")
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")
