"""Patches and selectors where the details matter: which lists are merged, and what is not read as a selector."""

import itertools
from typing import Any

import pytest

from fleet.kube.resources import CONFIG_MAPS, NODES, PODS, SERVICE_ACCOUNTS
from fleet.member.errors import MemberRefused
from tests.contract.target import Target, pod

_numbers = itertools.count()
STRATEGIC = "application/strategic-merge-patch+json"


def strategic(target: Target, path: str, body: str) -> dict[str, Any]:
    code, answer = target.raw("PATCH", path, body.encode(), Content_Type=STRATEGIC)
    assert code == 200, answer
    return answer


@pytest.mark.usefixtures("pods")
def test_it_replaces_the_taints_of_a_node_as_one(target: Target) -> None:
    name = f"node-{next(_numbers)}"
    taint = {"key": "a", "effect": "NoExecute"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"taints": [taint]}}
    target.member.create(NODES.path(), node)
    patched = strategic(target, NODES.path(name=name), '{"spec":{"taints":[{"key":"b","effect":"NoExecute"}]}}')
    keys = {each["key"] for each in patched["spec"]["taints"]} - {"node.kubernetes.io/not-ready"}
    assert keys == {"b"}


@pytest.mark.usefixtures("pods")
def test_it_merges_conditions_by_their_type(target: Target, namespace: str) -> None:
    target.member.create(PODS.path(namespace), pod("a"))
    path = PODS.path(namespace, "a", "status")
    strategic(target, path, '{"status":{"conditions":[{"type":"Ready","status":"False"}]}}')
    patched = strategic(target, path, '{"status":{"conditions":[{"type":"PodScheduled","status":"True"}]}}')
    assert {each["type"]: each["status"] for each in patched["status"]["conditions"]} == {
        "Ready": "False",
        "PodScheduled": "True",
    }


def test_it_merges_the_secrets_of_an_account_by_name(target: Target, namespace: str) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}, "secrets": [{"name": "x"}]}
    target.member.create(SERVICE_ACCOUNTS.path(namespace), account)
    patched = strategic(target, SERVICE_ACCOUNTS.path(namespace, "a"), '{"secrets":[{"name":"y"}]}')
    assert {each["name"] for each in patched["secrets"]} == {"x", "y"}


@pytest.mark.usefixtures("pods")
def test_it_deletes_one_condition_where_told(target: Target, namespace: str) -> None:
    target.member.create(PODS.path(namespace), pod("a"))
    path = PODS.path(namespace, "a", "status")
    strategic(target, path, '{"status":{"conditions":[{"type":"Ready","status":"False"}]}}')
    patched = strategic(target, path, '{"status":{"conditions":[{"type":"Ready","$patch":"delete"}]}}')
    assert not patched["status"].get("conditions")


@pytest.mark.parametrize(
    "query",
    [{"labelSelector": "a,"}, {"labelSelector": "a in b"}, {"fieldSelector": "metadata.name in (a)"}],
)
def test_it_refuses_what_only_looks_like_a_selector(target: Target, namespace: str, query: dict[str, str]) -> None:
    with pytest.raises(MemberRefused) as refused:
        target.member.list(CONFIG_MAPS.path(namespace), query)
    assert (refused.value.status, refused.value.reason) == (400, "BadRequest")


@pytest.mark.usefixtures("pods")
def test_it_reads_fields_with_room_between_them(target: Target, namespace: str) -> None:
    target.member.create(PODS.path(namespace), pod("a"))
    found = target.member.list(PODS.path(namespace), {"fieldSelector": "metadata.name==a,status.phase!=Running"})
    assert [each["metadata"]["name"] for each in found["items"]] == ["a"]
