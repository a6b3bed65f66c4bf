"""Whether, and how, a policy divides: what is read, what is refused and why, what does nothing and says so."""

import pytest

from jobs.core.division.replicas import Preference
from jobs.core.division.spread import Spread
from jobs.core.policies import propagation
from tests.jobs.core.policies.builders import KNOWN

JOB, PYTORCH = ({"apiVersion": "batch/v1", "kind": "Job"}, {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"})


def manifest(*, spread: object = None, selects: dict = JOB, **scheduling: object) -> dict:
    placement = {"replicaScheduling": {"replicaSchedulingType": "Divided", **scheduling}, "spreadConstraints": spread}
    return {"spec": {"resourceSelectors": [selects], "placement": placement}}


def weighted(**preference: object) -> dict:
    return {"replicaDivisionPreference": "Weighted", "weightPreference": preference}


@pytest.mark.parametrize(
    ("scheduling", "preference"),
    [
        ({}, Preference.AGGREGATED),
        ({"replicaDivisionPreference": "Aggregated"}, Preference.AGGREGATED),
        (weighted(dynamicWeight="AvailableReplicas"), Preference.BY_ROOM),
        (weighted(), Preference.BY_WEIGHT),
    ],
)
def test_it_reads_karmadas_preferences(scheduling, preference):
    spec = propagation.parse_propagation_policy(manifest(**scheduling), KNOWN)
    assert spec.faults == () and spec.division.preference is preference


def test_it_divides_nothing_unless_it_is_told_to():
    assert propagation.parse_propagation_policy(manifest(replicaSchedulingType="Duplicated"), KNOWN).division is None
    assert propagation.parse_propagation_policy({"spec": {"resourceSelectors": [JOB]}}, KNOWN).division is None


def test_it_never_divides_gangs():
    assert propagation.parse_propagation_policy(manifest(customSchedulingType="Gang"), KNOWN).division is None


def test_it_reads_static_weights_with_the_clusters_they_select():
    rules = [
        {"targetCluster": {"clusterNames": ["north"]}, "weight": 2},
        {"targetCluster": {"exclude": ["west"]}, "weight": 1},
    ]
    spec = propagation.parse_propagation_policy(manifest(**weighted(staticWeightList=rules)), KNOWN)
    assert [(each.names, each.exclude, weight) for each, weight in spec.weights] == [
        (("north",), (), 2),
        ((), ("west",), 1),
    ]


def test_it_reads_spread_constraints():
    spread = [{"spreadByField": "region", "minGroups": 2}, {"spreadByField": "cluster", "minGroups": 2, "maxGroups": 4}]
    found = propagation.parse_propagation_policy(manifest(spread=spread), KNOWN)
    assert found.faults == ()
    assert found.division.spreads == (Spread("region", 2), Spread("cluster", 2, 4))


def test_it_reads_overflow_tiers():
    terms = [{"clusterNames": ["own"], "overflowAffinities": [{"clusterNames": ["spot"]}]}, {"clusterNames": ["last"]}]
    made = manifest()
    made["spec"]["placement"]["clusterAffinities"] = terms
    assert propagation.parse_propagation_policy(made, KNOWN).tiers == (0, 1, 0)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (weighted(dynamicWeight="Cpu"), "weightPreference.dynamicWeight"),
        (weighted(staticWeightList={}), "weightPreference.staticWeightList"),
        (weighted(staticWeightList=[{"weight": 0}]), "staticWeightList[0].weight"),
        (weighted(staticWeightList=["north"]), "staticWeightList[0]"),
        (weighted(dynamicWeight="AvailableReplicas", staticWeightList=[{"weight": 1}]), "staticWeightList"),
        ({"spread": [{"minGroups": 3, "maxGroups": 2}]}, "spreadConstraints[0].maxGroups"),
        ({"spread": [{"spreadByLabel": "rack"}]}, "spreadConstraints[0].spreadByLabel"),
        ({"spread": [{"spreadByField": "zone"}, {"spreadByField": "region"}]}, "spreadConstraints"),
        ({"spread": [{"spreadByField": "zone"}, {"spreadByField": "zone"}]}, "spreadConstraints[1].spreadByField"),
        ({"spread": [{"minGroups": 2}], "customSchedulingType": "Gang"}, "spreadConstraints[0].minGroups"),
    ],
)
def test_it_names_the_field_at_fault(given, field):
    faults = propagation.parse_propagation_policy(manifest(**given), KNOWN).faults
    assert any(field in fault.field for fault in faults)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({**weighted(), "selects": PYTORCH}, "Weighted divides nothing: a job of such a kind runs on one cluster"),
        ({"weightPreference": {"dynamicWeight": "AvailableReplicas"}}, "weightPreference has no effect without"),
        ({**weighted(), "spread": [{"spreadByField": "cluster"}]}, "no effect beside static weights"),
    ],
)
def test_it_warns_of_what_does_nothing(given, told):
    assert any(told in each for each in propagation.warnings(manifest(**given)))
