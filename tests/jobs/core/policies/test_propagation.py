"""Policies: what is read, what is refused and why, which one claims a job."""

import copy

import pytest
import yaml

from jobs.core.failover.rules import PurgeMode
from jobs.core.policies import propagation
from tests.jobs.core.policies.builders import KNOWN

SEED = yaml.safe_load("""
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata: {name: example-policy}
spec:
  suspension: {scheduling: true}
  propagateDeps: true
  failover: {application: {decisionConditions: {tolerationSeconds: 30}, purgeMode: Immediately}}
  placement: {replicaScheduling: {replicaSchedulingType: Divided, customSchedulingType: Gang}}
  resourceSelectors: [{apiVersion: kubeflow.org/v1, kind: PyTorchJob}]
""")


def changed(path: str, value: object) -> dict:
    made = copy.deepcopy(SEED)
    target = made["spec"]
    *parents, last = path.split(".")
    for word in parents:
        target = target.setdefault(word, {})
    target[last] = value
    return made


def test_it_reads_the_seeds_policy():
    spec = propagation.parse_propagation_policy(SEED, KNOWN)
    assert spec.faults == () and spec.suspended and spec.propagate_deps
    assert (spec.application_toleration_s, spec.application_purge) == (30.0, PurgeMode.DIRECTLY)


def test_it_warns_of_old_spellings_and_of_words_without_effect():
    told = propagation.warnings(changed("preserveResourcesOnDeletion", True))
    assert told == [
        "spec.failover.application.purgeMode: Immediately is an old spelling of Directly",
        "spec.preserveResourcesOnDeletion has no effect in Convoy",
    ]


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("resourceSelectors", [], "spec.resourceSelectors"),
        ("resourceSelectors", None, "spec.resourceSelectors"),
        ("resourceSelectors", [{"apiVersion": "apps/v1", "kind": "Deployment"}], "spec.resourceSelectors[0]"),
        ("failover.application.purgeMode", "Softly", "spec.failover.application.purgeMode"),
        ("placement.spreadConstraints", [{"minGroups": 2}], "spec.placement.spreadConstraints[0].minGroups"),
        ("placement.spreadConstraints", {}, "spec.placement.spreadConstraints"),
        (
            "placement.spreadConstraints",
            [{"spreadByField": "rack"}],
            "spec.placement.spreadConstraints[0].spreadByField",
        ),
        ("placement.spreadConstraints", [{"maxGroups": 0}], "spec.placement.spreadConstraints[0].maxGroups"),
        ("placement.replicaScheduling.customSchedulingType", "Any", "customSchedulingType"),
        ("placement.replicaScheduling.replicaDivisionPreference", "Even", "replicaDivisionPreference"),
        ("placement.clusterAffinities", [{"overflowAffinities": {}}], "clusterAffinities[0].overflowAffinities"),
        ("placement.clusterAffinity", {"clusterNames": "north"}, "spec.placement.clusterAffinity.clusterNames"),
        ("placement.clusterTolerations", [{"operator": "Near"}], "spec.placement.clusterTolerations[0].operator"),
        ("placement.clusterAffinities", [], "spec.placement.clusterAffinities"),
        ("placement", "north", "spec.placement"),
        ("priority", "high", "spec.priority"),
        ("surprise", 1, "spec.surprise"),
    ],
)
def test_it_names_the_field_at_fault(path, value, field):
    faults = propagation.parse_propagation_policy(changed(path, value), KNOWN).faults
    assert any(field in fault.field for fault in faults)


@pytest.mark.parametrize(
    ("annotation", "good", "bad"),
    [
        ("convoy.dev/failure-budgets", "CodeError=1, Infrastructure=50", "CodeError=0"),
        ("convoy.dev/cool-offs", "CodeError=0,Infrastructure=600", "CodeError=-1"),
    ],
)
def test_it_reads_amounts_by_cause_and_names_the_part_at_fault(annotation, good, bad):
    for text, faults in ((good, 0), (bad, 1), ("Bad=1", 1), ("CodeError", 1), ("CodeError=1e9", 1), ("", 0)):
        policy = {**SEED, "metadata": {"name": "p", "annotations": {annotation: text}}}
        spec = propagation.parse_propagation_policy(policy, KNOWN)
        assert [fault.field for fault in spec.faults] == [f"metadata.annotations.{annotation}"] * faults, text
        if text == good:
            assert sorted((spec.failure_budgets or spec.cool_offs).values()) in ([1, 50], [0, 600])


def test_it_reads_overflow_tiers_as_further_terms():
    tiers = [{"clusterNames": ["spot"]}, {"clusterNames": ["far"]}]
    terms = [{"clusterNames": ["own"], "overflowAffinities": tiers}, {"clusterNames": ["last"]}]
    spec = propagation.parse_propagation_policy(changed("placement.clusterAffinities", terms), KNOWN)
    assert [each.names for each in spec.affinities] == [("own",), ("spot",), ("far",), ("last",)]


def test_it_says_that_a_job_is_neither_doubled_nor_divided():
    doubled = propagation.warnings(changed("placement.replicaScheduling", {"replicaSchedulingType": "Duplicated"}))
    assert any("Duplicated makes no second copy" in each for each in doubled)
    weighted = propagation.warnings(changed("placement.replicaScheduling.replicaDivisionPreference", "Weighted"))
    assert any("Weighted divides nothing" in each for each in weighted)


def candidate(name: str, namespace: str = "default", selector: dict | None = None, priority: int = 0):
    chosen = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", **(selector or {})}
    spec = propagation.parse_propagation_policy({"spec": {"resourceSelectors": [chosen], "priority": priority}}, KNOWN)
    return propagation.Candidate(name, namespace, name, spec)


def claimed_by(*candidates) -> str | None:
    job = {"api_version": "kubeflow.org/v1", "kind": "PyTorchJob", "namespace": "default", "name": "llama"}
    found = propagation.match_policy(candidates, **job, labels={"team": "vision"})
    return found and found.ref


def test_it_prefers_a_namespaced_policy_to_a_cluster_wide_one():
    assert claimed_by(candidate("wide", "", priority=9), candidate("near")) == "near"


def test_it_prefers_the_higher_priority_then_the_closer_selector_then_the_name():
    labels = {"labelSelector": {"matchLabels": {"team": "vision"}}}
    assert claimed_by(candidate("a"), candidate("b", priority=1)) == "b"
    assert claimed_by(candidate("a"), candidate("b", selector=labels)) == "b"
    assert claimed_by(candidate("a", selector=labels), candidate("b", selector={"name": "llama"})) == "b"
    assert claimed_by(candidate("b"), candidate("a")) == "a"


def test_it_leaves_a_job_alone_that_nobody_selects():
    assert claimed_by(candidate("a", "other"), candidate("b", selector={"name": "bert"})) is None
