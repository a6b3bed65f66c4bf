"""Lists: selectors, pages, and where a watch may begin."""

import pytest
from kubernetes.client import CoreV1Api

from fleet.kube.resources import CONFIG_MAPS, PODS
from fleet.member.errors import MemberExpired, MemberRefused
from tests.contract.target import Target, config_map, pod

MAPS = {"a": {"tier": "gold", "zone": "1"}, "b": {"tier": "silver"}, "c": {"zone": "2"}, "d": {}}


@pytest.fixture
def filled(target: Target, namespace: str) -> str:
    for name, labels in MAPS.items():
        target.member.create(CONFIG_MAPS.path(namespace), config_map(name, labels=labels))
    return namespace


def names(listed: dict) -> list[str]:
    """Without the one that newer clusters put into every namespace."""
    return [each["metadata"]["name"] for each in listed["items"] if each["metadata"]["name"] != "kube-root-ca.crt"]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("tier=gold", "a"),
        ("tier==gold", "a"),
        ("tier!=gold", "bcd"),
        ("tier in (gold,silver)", "ab"),
        ("tier notin (gold)", "bcd"),
        ("tier", "ab"),
        ("!tier", "cd"),
        ("zone,tier in (gold, silver)", "a"),
        ("tier=", ""),
        ("", "abcd"),
    ],
)
def test_it_selects_by_labels(target: Target, filled: str, selector: str, expected: str) -> None:
    listed = target.member.list(CONFIG_MAPS.path(filled), {"labelSelector": selector})
    assert names(listed) == list(expected)


def test_it_selects_by_fields(target: Target, filled: str) -> None:
    def found(selector: str) -> list[str]:
        return names(target.member.list(CONFIG_MAPS.path(filled), {"fieldSelector": selector}))

    assert found("metadata.name=b") == ["b"]
    assert found("metadata.name!=b") == ["a", "c", "d"]
    assert found(f"metadata.namespace={filled},metadata.name=c") == ["c"]


@pytest.mark.usefixtures("pods")
def test_it_selects_pods_by_what_they_do(target: Target, namespace: str) -> None:
    target.member.create(PODS.path(namespace), pod("p"))
    core = CoreV1Api(target.api)
    for selector in ("spec.nodeName=", "status.phase=Pending", "spec.restartPolicy=Always"):
        assert [p.metadata.name for p in core.list_namespaced_pod(namespace, field_selector=selector).items] == ["p"]
    assert not core.list_namespaced_pod(namespace, field_selector="status.phase!=Pending").items


@pytest.mark.parametrize(
    "query", [{"labelSelector": "a in ("}, {"labelSelector": "a=b c"}, {"fieldSelector": "metadata.labels=x"}]
)
def test_it_refuses_selectors_it_cannot_read(target: Target, namespace: str, query: dict) -> None:
    with pytest.raises(MemberRefused) as refusal:
        target.member.list(CONFIG_MAPS.path(namespace), query)
    assert (refusal.value.status, refusal.value.reason) == (400, "BadRequest")


@pytest.mark.usefixtures("bodies")
def test_it_lists_by_pages_of_one_moment(target: Target, filled: str) -> None:
    core = CoreV1Api(target.api)
    first = core.list_namespaced_config_map(filled, limit=3)
    target.member.create(CONFIG_MAPS.path(filled), config_map("aa"))
    target.member.delete(CONFIG_MAPS.path(filled, "d"))
    rest = core.list_namespaced_config_map(filled, limit=3, _continue=first.metadata._continue)
    assert [m.metadata.name for m in first.items + rest.items if m.metadata.name in "abcdaa"] == ["a", "b", "c", "d"]
    assert rest.metadata._continue in (None, "")
    assert rest.metadata.resource_version == first.metadata.resource_version


def test_it_tells_how_many_are_left(target: Target, filled: str) -> None:
    page = target.member.get(CONFIG_MAPS.path(filled), {"limit": "1"})
    everything = target.member.get(CONFIG_MAPS.path(filled))
    assert page["metadata"]["remainingItemCount"] == len(everything["items"]) - 1
    assert "continue" not in everything["metadata"]


def test_it_refuses_to_continue_what_was_never_begun(target: Target, filled: str) -> None:
    with pytest.raises(MemberRefused) as refusal:
        target.member.get(CONFIG_MAPS.path(filled), {"limit": "1", "continue": "nonsense"})
    assert refusal.value.status == 400


def test_it_forgets_a_page_after_a_compaction(target: Target, filled: str) -> None:
    page = target.member.get(CONFIG_MAPS.path(filled), {"limit": "1"})
    for name in "ef":
        target.member.create(CONFIG_MAPS.path(filled), config_map(name))
    target.compact()
    with pytest.raises(MemberExpired):
        target.member.get(CONFIG_MAPS.path(filled), {"limit": "1", "continue": page["metadata"]["continue"]})


def test_it_lists_no_version_that_is_not_there_yet(target: Target, filled: str) -> None:
    code, status = target.raw("GET", f"{CONFIG_MAPS.path(filled)}?resourceVersion=999999999999")
    assert (code, status["reason"]) == (504, "Timeout")
    assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (f"{TABLE},application/json", "Table"),
        (f"application/cbor;as=Table;v=v1;g=meta.k8s.io,{TABLE},application/json", "Table"),
        (f"application/json,{TABLE}", "ConfigMapList"),
        ("*/*", "ConfigMapList"),
    ],
)
def test_it_prints_a_table_for_the_first_offer_it_can_serve(
    target: Target, filled: str, accept: str, kind: str
) -> None:
    listed = target.raw("GET", CONFIG_MAPS.path(filled), Accept=accept)[1]
    assert listed["kind"] == kind
    if kind == "Table":
        rows = [row["object"] for row in listed["rows"] if row["object"]["metadata"]["name"] in MAPS]
        assert {row["kind"] for row in rows} == {"PartialObjectMetadata"}
        assert [row["metadata"].get("labels", {}) for row in rows] == list(MAPS.values())


def test_it_lists_over_all_namespaces(target: Target, filled: str) -> None:
    listed = target.member.list(CONFIG_MAPS.path(), {"fieldSelector": f"metadata.namespace={filled}"})
    assert names(listed) == list(MAPS)
    assert listed["kind"] == "ConfigMapList" and listed["apiVersion"] == "v1"
