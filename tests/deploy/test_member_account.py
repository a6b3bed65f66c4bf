"""The account that a member cluster has for the fleet: all rights that joining looks for, and few that nobody names."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from fleet.core.members import fence
from fleet.member.discovery import IMPERSONATION
from fleet.services.members import event_handlers, member_facts

Grants = set[tuple[str, str, str]]
DOCUMENTS = list(yaml.safe_load_all(Path("deploy/member-manifests/convoy-fleet.yaml").read_text()))
EXTRAS = {
    ("", "events", "get"),
    ("apps", "deployments", "get"),
    ("coordination.k8s.io", "leases", "get"),
    *(("metrics.k8s.io", plural, verb) for plural in ("nodes", "pods") for verb in ("get", "list")),
    *(("", f"pods/{each}", "get") for each in ("attach", "exec", "portforward")),
}
"""What is used where it is granted, and not missed where it is not."""


def granted(kind: str, name: str, namespace: str = "") -> Grants:
    [document] = [
        each
        for each in DOCUMENTS
        if (each["kind"], each["metadata"]["name"], each["metadata"].get("namespace", "")) == (kind, name, namespace)
    ]
    return {
        (group, plural, verb)
        for rule in document["rules"]
        for group in rule["apiGroups"]
        for plural in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.fixture
def looked_for(monkeypatch: pytest.MonkeyPatch) -> Grants:
    """In a cluster that serves everything."""
    needs: Any = SimpleNamespace(kind=None)
    monkeypatch.setattr(member_facts, "serves", lambda apis, resource: True)
    monkeypatch.setattr(event_handlers, "account_needs", lambda: [needs])
    return {(right.group, right.plural, right.verb) for right in member_facts._rights({})}


def test_it_has_what_joining_looks_for_and_a_few_reads_more(looked_for: Grants) -> None:
    impersonation = {(right.group, right.plural, right.verb) for right in IMPERSONATION}
    assert granted("ClusterRole", "convoy-fleet") == looked_for - impersonation | EXTRAS
    assert granted("ClusterRole", "convoy-fleet-impersonation") == impersonation


def test_nothing_is_bound_to_the_role_that_impersonates() -> None:
    bound = [each["roleRef"]["name"] for each in DOCUMENTS if each["kind"].endswith("Binding")]
    assert set(bound) == {"convoy-fleet"}


def test_it_renews_the_lease_of_the_fleet_alone() -> None:
    [role] = [each for each in DOCUMENTS if each["kind"] == "Role" and each["metadata"]["namespace"] == fence.NAMESPACE]
    leases = [rule for rule in role["rules"] if rule["resources"] == ["leases"]]
    assert [(rule["resourceNames"], rule["verbs"]) for rule in leases] == [([fence.NAME], ["patch"])]
