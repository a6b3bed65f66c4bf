"""Types of fields: what passes, what is named as wrong and where, and that anything at all is answered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.kube import resources
from fleet.kube.schema import shapes

leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=3))
fields = st.sampled_from(
    ["metadata", "spec", "status", "containers", "name", "labels", "conditions", "resources", "limits"]
)
documents = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(fields, inner, max_size=3)),
    max_leaves=10,
)
KINDS = [resources.PODS, resources.JOBS, resources.NODES, resources.CRDS, resources.PYTORCH_JOBS]


def pod(**container):
    return {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", **container}]}}


def test_it_takes_a_pod_with_the_numbers_yaml_makes():
    limits = {"cpu": 2, "memory": "1Gi", "nvidia.com/gpu": 1.0}
    assert shapes.fault(pod(resources={"limits": limits}, env=[{"name": "A", "value": None}]), resources.PODS) == ""


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ([], "the body must be an object"),
        ({"metadata": []}, "metadata must be an object"),
        ({"metadata": {"labels": {"a": 1}}}, "metadata.labels[a] must be text"),
        ({"metadata": {"finalizers": "x"}}, "metadata.finalizers must be a list"),
        ({"metadata": {"ownerReferences": [None]}}, "metadata.ownerReferences[0] must not be null"),
        ({"spec": "x"}, "spec must be an object"),
        (
            {"spec": {"terminationGracePeriodSeconds": True}},
            "spec.terminationGracePeriodSeconds must be a whole number",
        ),
        (pod(name=5), "spec.containers[0].name must be text"),
        (pod(env=[{"name": "A", "value": 1}]), "spec.containers[0].env[0].value must be text"),
        (pod(resources={"limits": {"cpu": "1e400"}}), "spec.containers[0].resources.limits[cpu]: '1e400' is larger"),
    ],
)
def test_it_names_the_place_and_what_belongs_there(body, told):
    assert shapes.fault(body, resources.PODS).startswith(told)


def test_it_leaves_the_spec_of_an_unknown_kind_alone():
    assert shapes.fault({"metadata": {"name": "a"}, "spec": [1]}, resources.PYTORCH_JOBS) == ""


def test_it_takes_null_for_nothing():
    assert shapes.fault({"metadata": None, "spec": {"containers": None}, "status": None}, resources.PODS) == ""


@given(documents, st.sampled_from(KINDS))
def test_it_has_an_answer_to_anything(document, resource):
    assert isinstance(shapes.fault(document, resource), str)
