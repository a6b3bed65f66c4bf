"""A policy of a namespace is for the jobs of that namespace, and says so where it is asked for others."""

from typing import Any

import pytest
from django.utils import timezone

from fleet.errors import InvalidInput
from jobs.models import Policy
from jobs.services.submission import submit

RULES = {
    "PropagationPolicy": {"placement": {"clusterAffinity": {"clusterNames": ["north"]}}},
    "OverridePolicy": {"overriders": {"labelsOverrider": [{"operator": "add", "value": {"a": "b"}}]}},
}


def policy(kind: str, namespace: str | None, *selected: str | None) -> dict[str, Any]:
    selectors = [
        {"apiVersion": "batch/v1", "kind": "Job", **({"namespace": each} if each else {})} for each in selected
    ]
    home = {"namespace": namespace} if namespace else {}
    body = {"resourceSelectors": selectors, **RULES[kind.removeprefix("Cluster")]}
    return {"apiVersion": "policy.karmada.io/v1alpha1", "kind": kind, "metadata": {"name": "p", **home}, "spec": body}


def apply(document: dict[str, Any]) -> None:
    submit.apply([document], by="mal", now=timezone.now())


@pytest.mark.django_db
@pytest.mark.parametrize("kind", RULES)
def test_a_selector_of_another_namespace_is_refused_by_its_field(kind: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        apply(policy(kind, "team-a", "team-a", None, "team-b"))
    [fault] = refusal.value.faults
    assert fault.field.endswith("spec.resourceSelectors[2].namespace") and "team-a" in fault.detail
    assert not Policy.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("kind", RULES)
def test_its_own_namespace_and_those_of_a_cluster_wide_policy_are_taken(kind: str) -> None:
    apply(policy(kind, "team-a", "team-a", None))
    apply(policy(f"Cluster{kind}", None, "team-a", "team-b", None))
    assert Policy.objects.count() == 2
