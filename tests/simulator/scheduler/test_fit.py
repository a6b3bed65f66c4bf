"""Requests of pods and the reasons against a node."""

import pytest

from simulator.scheduler.fit import NodeInfo, amount, pod_request, request_of, why_not


def pod(**spec: object) -> dict:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}], **spec}}


def asks(**resources: object) -> dict:
    return {"name": "c", "resources": {"requests": resources}}


def node_with(**changes: object) -> NodeInfo:
    given = {
        "name": "n1",
        "offers": {"cpu": 8000, "memory": amount("64Gi"), "pods": 110_000, "nvidia.com/gpu": 8000},
        "labels": {"zone": "a", "size": "8"},
        "taints": [],
    }
    return NodeInfo(**{**given, **changes})


@pytest.mark.parametrize(
    ("quantity", "thousandths"),
    [("500m", 500), (2, 2000), ("1Ki", 1024_000), ("0.5", 500), ("1e3", 1_000_000), ("1u", 1), (0.1, 100)],
)
def test_it_reads_quantities(quantity: object, thousandths: int) -> None:
    assert amount(quantity) == thousandths


def test_it_sums_containers_and_takes_the_largest_init_container() -> None:
    spec = {
        "containers": [asks(cpu="1"), {"name": "d", "resources": {"limits": {"cpu": "2", "nvidia.com/gpu": 1}}}],
        "initContainers": [asks(cpu="5"), asks(cpu="2", memory="1k")],
        "overhead": {"cpu": "100m"},
    }
    assert pod_request(spec) == {"cpu": 5100, "memory": 1_000_000, "nvidia.com/gpu": 1000, "pods": 1000}


def test_it_counts_a_sidecar_with_the_containers() -> None:
    sidecar = {**asks(cpu="1"), "restartPolicy": "Always"}
    spec = {"containers": [asks(cpu="2")], "initContainers": [sidecar, asks(cpu="1")]}
    assert pod_request(spec)["cpu"] == 3000


def test_it_names_every_resource_that_is_short() -> None:
    request = request_of(pod(containers=[asks(cpu="9", **{"nvidia.com/gpu": 9})]))
    assert why_not(request, node_with()) == ["Insufficient cpu", "Insufficient nvidia.com/gpu"]


def test_it_counts_what_is_held() -> None:
    full = node_with()
    full.hold({"nvidia.com/gpu": 7000})
    assert why_not(request_of(pod(containers=[asks(**{"nvidia.com/gpu": 2})])), full) == ["Insufficient nvidia.com/gpu"]


def test_it_heeds_the_node_selector() -> None:
    assert why_not(request_of(pod(nodeSelector={"zone": "a"})), node_with()) == []
    assert why_not(request_of(pod(nodeSelector={"zone": "b"})), node_with()) == ["node(s) didn't match node selector"]


@pytest.mark.parametrize(
    ("operator", "values", "fits"),
    [
        ("In", ["a", "b"], True),
        ("NotIn", ["a"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("Gt", ["1"], False),
    ],
)
def test_it_heeds_required_affinity(operator: str, values: list[str], fits: bool) -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": operator, "values": values}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    assert (why_not(request_of(pod(affinity=affinity)), node_with()) == []) is fits


def test_it_compares_labels_as_numbers() -> None:
    term = {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["4"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    assert why_not(request_of(pod(affinity=affinity)), node_with()) == []


def test_it_heeds_taints_and_tolerations() -> None:
    tainted = node_with(taints=[{"key": "spot", "value": "yes", "effect": "NoSchedule"}])
    assert why_not(request_of(pod()), tainted) == ["node(s) had taint {spot: yes}, that the pod didn't tolerate"]
    for toleration in ({"key": "spot", "value": "yes"}, {"key": "spot", "operator": "Exists"}, {"operator": "Exists"}):
        assert why_not(request_of(pod(tolerations=[toleration])), tainted) == []


def test_it_leaves_a_cordoned_node_alone() -> None:
    assert why_not(request_of(pod()), node_with(unschedulable=True)) == ["node(s) were unschedulable"]
