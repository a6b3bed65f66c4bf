"""Rules of statePreservation: what is read, what is refused and why, what they find."""

import pytest

from jobs.core.policies import propagation, state_preservation
from jobs.core.policies.state_preservation import StateRule
from tests.jobs.core.policies.builders import KNOWN

RULE = {"aliasLabelName": "example.com/checkpoint", "jsonPath": "{.saved.path}"}


def policy(*rules: object, part: str = "application", **failover: object) -> dict:
    return {
        "metadata": {"name": "p"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}],
            "failover": {part: {"statePreservation": {"rules": list(rules)}}, **failover},
        },
    }


def read(*rules: object, **failover: object) -> propagation.PolicySpec:
    return propagation.parse_propagation_policy(policy(*rules, **failover), KNOWN)


def test_it_reads_karmadas_rules_without_a_warning():
    spec = read(RULE)
    assert spec.faults == ()
    assert spec.state_rules == (StateRule("example.com/checkpoint", "{.saved.path}"),)
    assert propagation.warnings(policy(RULE)) == []


def test_it_reads_the_same_rule_for_both_causes_once():
    spec = read(RULE, cluster={"statePreservation": {"rules": [RULE]}})
    assert spec.faults == () and len(spec.state_rules) == 1


def test_it_reads_an_annotation_of_a_pod_and_a_variable():
    spec = read({"aliasLabelName": "step", "podAnnotation": "example.com/step", "env": "RESUME_STEP"})
    assert spec.state_rules == (StateRule("step", "", "example.com/step", "RESUME_STEP"),)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"aliasLabelName": "a" * 64}, "aliasLabelName"),
        ({"aliasLabelName": ""}, "aliasLabelName"),
        ({"aliasLabelName": 3}, "aliasLabelName"),
        ({"aliasLabelName": "convoy.dev/attempt"}, "aliasLabelName"),
        ({"aliasLabelName": "app.kubernetes.io/name"}, "aliasLabelName"),
        ({"jsonPath": "{.a[}"}, "jsonPath"),
        ({"jsonPath": None}, "jsonPath"),
        ({"podAnnotation": "step"}, "jsonPath"),
        ({"jsonPath": None, "podAnnotation": "no key"}, "podAnnotation"),
        ({"env": "9LIVES"}, "env"),
        ({"env": "CONVOY_RANKS"}, "env"),
        ({"path": "{.a}"}, "path"),
    ],
)
def test_it_refuses_a_rule_that_can_never_act(change, field):
    spec = read({**RULE, **change})
    assert [fault.field for fault in spec.faults if fault.field.endswith(f"rules[0].{field}")]
    assert spec.state_rules == ()


def test_it_takes_names_of_63_letters():
    spec = read({"aliasLabelName": f"{'d' * 63}.example/{'n' * 63}", "podAnnotation": "k" * 63})
    assert spec.faults == ()


@pytest.mark.parametrize("rules", [None, [], {}, "x"])
def test_it_refuses_no_rules(rules):
    manifest = policy()
    manifest["spec"]["failover"]["application"]["statePreservation"] = {"rules": rules}
    faults = propagation.parse_propagation_policy(manifest, KNOWN).faults
    assert [fault.field for fault in faults] == ["spec.failover.application.statePreservation.rules"]


def test_it_refuses_two_rules_of_one_name_or_one_variable():
    other = {**RULE, "jsonPath": "{.other}"}
    assert "also the name of another rule" in str(read(RULE, other).faults)
    alike = [{**RULE, "aliasLabelName": name, "env": "CKPT"} for name in ("a", "b")]
    assert "the same env" in str(read(*alike).faults)


def test_it_warns_that_divided_jobs_keep_no_state():
    manifest = policy(RULE)
    manifest["spec"]["placement"] = {"replicaScheduling": {"replicaSchedulingType": "Divided"}}
    assert "divided over clusters" in str(propagation.warnings(manifest))


def test_a_rule_that_finds_nothing_has_no_value():
    rules = [StateRule("a", "{.a}"), StateRule("b", "{.b.c}"), StateRule("n", "{.n}"), StateRule("o", "{.o}")]
    status = {"a": "x" * 5000, "b": {}, "n": None, "o": {"k": [1, True]}}
    assert state_preservation.from_status(rules, status) == {"a": "x" * 5000, "o": '{"k":[1,true]}'}
