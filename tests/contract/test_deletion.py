"""How objects go: at once, gracefully, when their finalizers are done, and with or without what they owned."""

import pytest
from kubernetes.client import CoreV1Api, V1DeleteOptions, V1Preconditions
from kubernetes.client.exceptions import ApiException

from fleet.kube.resources import CONFIG_MAPS, JOBS, NODES, PODS
from fleet.member.errors import MemberChanged, MemberMissing, MemberRefused
from tests.contract.target import Target, config_map, gone, job, owner, pod, until


def family(target: Target, namespace: str) -> tuple[str, str]:
    """The paths of an owner and of what it owns."""
    parent = target.member.create(CONFIG_MAPS.path(namespace), config_map("parent"))
    child = config_map("child", ownerReferences=[owner(parent)])
    target.member.create(CONFIG_MAPS.path(namespace), child)
    return CONFIG_MAPS.path(namespace, "parent"), CONFIG_MAPS.path(namespace, "child")


def test_it_deletes_at_once_what_nothing_holds(target: Target, namespace: str) -> None:
    made = target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    answer = target.member.delete(CONFIG_MAPS.path(namespace, "a"))
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"] == {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    with pytest.raises(MemberMissing):
        target.member.delete(CONFIG_MAPS.path(namespace, "a"))


def test_it_deletes_only_the_object_that_was_meant(target: Target, namespace: str) -> None:
    made = target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    path = CONFIG_MAPS.path(namespace, "a")
    with pytest.raises(MemberChanged):
        target.member.delete(path, uid="another")
    target.member.delete(path, uid=made["metadata"]["uid"])
    assert gone(target, path)


def test_it_deletes_only_the_version_that_was_meant(target: Target, namespace: str) -> None:
    made = target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    target.member.merge_patch(CONFIG_MAPS.path(namespace, "a"), {"data": {"k": "1"}})
    options = V1DeleteOptions(preconditions=V1Preconditions(resource_version=made["metadata"]["resourceVersion"]))
    with pytest.raises(ApiException) as refusal:
        CoreV1Api(target.api).delete_namespaced_config_map("a", namespace, body=options)
    assert refusal.value.status == 409


def test_it_deletes_only_what_was_judged(target: Target, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace, "a")
    judged = target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))["metadata"]
    fresh = target.member.merge_patch(path, {"data": {"k": "1"}})["metadata"]
    with pytest.raises(MemberChanged):
        target.member.delete(path, uid=judged["uid"], version=judged["resourceVersion"])
    target.member.delete(path, uid=fresh["uid"], version=fresh["resourceVersion"])
    assert gone(target, path)


def test_it_patches_only_what_was_judged(target: Target, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace, "a")
    judged = target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))["metadata"]
    fresh = target.member.merge_patch(path, {"data": {"k": "1"}})["metadata"]
    stale = {"uid": judged["uid"], "resourceVersion": judged["resourceVersion"]}
    other = {"uid": "11111111-1111-4111-8111-111111111111", "resourceVersion": fresh["resourceVersion"]}
    for metadata in (stale, other):
        with pytest.raises(MemberChanged):
            target.member.merge_patch(path, {"metadata": metadata, "data": {"k": "2"}})
    assert target.member.get(path)["data"] == {"k": "1"}


@pytest.mark.usefixtures("finalizers")
def test_it_waits_for_finalizers(target: Target, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace, "a")
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a", finalizers=["contract.test/hold"]))
    marked = target.member.delete(path)
    assert marked["metadata"]["deletionTimestamp"] and not gone(target, path)
    again = target.member.delete(path)
    assert again["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]
    target.member.merge_patch(path, {"metadata": {"finalizers": None}})
    assert gone(target, path)


@pytest.mark.usefixtures("finalizers")
def test_it_adds_no_finalizer_to_what_is_going(target: Target, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace, "a")
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a", finalizers=["contract.test/hold"]))
    target.member.delete(path)
    with pytest.raises(MemberRefused) as refusal:
        finalizers = ["contract.test/hold", "contract.test/more"]
        target.member.merge_patch(path, {"metadata": {"finalizers": finalizers}})
    assert refusal.value.status == 422


@pytest.mark.usefixtures("owners")
def test_it_takes_dependents_along_later(target: Target, namespace: str) -> None:
    parent, child = family(target, namespace)
    target.member.delete(parent, propagation="Background")
    assert gone(target, parent)
    until(lambda: gone(target, child))


@pytest.mark.usefixtures("finalizers")
def test_it_takes_dependents_along_first(target: Target, namespace: str) -> None:
    parent, child = family(target, namespace)
    target.member.merge_patch(child, {"metadata": {"finalizers": ["contract.test/hold"]}})
    answer = target.member.delete(parent, propagation="Foreground")
    assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]
    until(lambda: target.member.get(child)["metadata"].get("deletionTimestamp"))
    assert not gone(target, parent)
    target.member.merge_patch(child, {"metadata": {"finalizers": None}})
    until(lambda: gone(target, child) and gone(target, parent))


@pytest.mark.usefixtures("finalizers", "owners")
def test_it_takes_along_what_is_created_while_its_owner_goes(target: Target, namespace: str) -> None:
    parent, child = family(target, namespace)
    target.member.merge_patch(child, {"metadata": {"finalizers": ["contract.test/hold"]}})
    going = target.member.delete(parent, propagation="Foreground")
    late = config_map("late", ownerReferences=[owner(going)])
    target.member.create(CONFIG_MAPS.path(namespace), late)
    assert not gone(target, parent)
    # The collector looks at the owner again when one of its dependents has gone, and may have looked before the late one came.
    target.member.merge_patch(child, {"metadata": {"finalizers": None}})
    until(lambda: gone(target, parent))
    assert gone(target, CONFIG_MAPS.path(namespace, "late"))


@pytest.mark.usefixtures("owners")
def test_it_leaves_orphans_standing(target: Target, namespace: str) -> None:
    parent, child = family(target, namespace)
    target.member.delete(parent, propagation="Orphan")
    until(lambda: gone(target, parent))
    until(lambda: not target.member.get(child)["metadata"].get("ownerReferences"))


@pytest.mark.usefixtures("owners")
def test_it_orphans_what_a_batch_job_owns_unless_told_otherwise(target: Target, namespace: str) -> None:
    made = target.member.create(JOBS.path(namespace), job("train"))
    target.member.create(CONFIG_MAPS.path(namespace), config_map("child", ownerReferences=[owner(made)]))
    target.raw("DELETE", JOBS.path(namespace, "train"))
    until(lambda: gone(target, JOBS.path(namespace, "train")))
    until(lambda: not target.member.get(CONFIG_MAPS.path(namespace, "child"))["metadata"].get("ownerReferences"))


@pytest.mark.usefixtures("owners")
def test_it_collects_what_belongs_to_nobody(target: Target, namespace: str) -> None:
    parent = target.member.create(CONFIG_MAPS.path(namespace), config_map("parent"))
    target.member.delete(CONFIG_MAPS.path(namespace, "parent"))
    child = config_map("child", ownerReferences=[owner(parent)])
    target.member.create(CONFIG_MAPS.path(namespace), child)
    until(lambda: gone(target, CONFIG_MAPS.path(namespace, "child")))


def test_it_refuses_a_propagation_it_does_not_know(target: Target, namespace: str) -> None:
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    with pytest.raises(MemberRefused) as refusal:
        target.member.delete(CONFIG_MAPS.path(namespace, "a"), propagation="Sideways")
    assert refusal.value.status == 422
    assert not gone(target, CONFIG_MAPS.path(namespace, "a"))


def test_it_deletes_by_selector(target: Target, namespace: str) -> None:
    for name, labels in (("a", {"go": "yes"}), ("b", {"go": "yes"}), ("c", {})):
        target.member.create(CONFIG_MAPS.path(namespace), config_map(name, labels=labels))
    CoreV1Api(target.api).delete_collection_namespaced_config_map(namespace, label_selector="go=yes")
    assert gone(target, CONFIG_MAPS.path(namespace, "a")) and gone(target, CONFIG_MAPS.path(namespace, "b"))
    assert not gone(target, CONFIG_MAPS.path(namespace, "c"))


@pytest.fixture
def bound(target: Target, namespace: str, pods: None) -> str:
    """The path of a pod on a node."""
    node = f"node-of-{namespace}"
    target.member.create(NODES.path(), {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
    target.member.create(PODS.path(namespace), pod("p"))
    bind(target, namespace, node)
    return PODS.path(namespace, "p")


def bind(target: Target, namespace: str, node: str) -> None:
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": node}}
    target.member.create(PODS.path(namespace, "p", "binding"), body)


def test_it_binds_a_pod_once(target: Target, namespace: str, bound: str) -> None:
    found = target.member.get(bound)
    assert found["spec"]["nodeName"] == f"node-of-{namespace}"
    assert [(c["type"], c["status"]) for c in found["status"]["conditions"]] == [("PodScheduled", "True")]
    with pytest.raises(MemberChanged) as refusal:
        bind(target, namespace, "another")
    assert "already assigned to node" in refusal.value.message


def test_it_gives_a_bound_pod_time_to_end(target: Target, bound: str) -> None:
    answer = target.member.delete(bound, grace_s=40)
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 40
    assert target.member.delete(bound, grace_s=5)["metadata"]["deletionGracePeriodSeconds"] == 5
    assert not gone(target, bound)
    target.member.delete(bound, grace_s=0)
    assert gone(target, bound)


@pytest.mark.usefixtures("pods")
def test_it_deletes_a_pod_on_no_node_at_once(target: Target, namespace: str) -> None:
    target.member.create(PODS.path(namespace), pod("p"))
    answer = target.member.delete(PODS.path(namespace, "p"))
    assert answer["metadata"]["name"] == "p"
    assert gone(target, PODS.path(namespace, "p"))


@pytest.mark.usefixtures("pods")
def test_it_has_no_log_before_a_pod_is_on_a_node(target: Target, namespace: str) -> None:
    target.member.create(PODS.path(namespace), pod("p"))
    assert target.member.get_text(PODS.path(namespace, "p", "log")) == ""
    with pytest.raises(MemberMissing):
        target.member.get_text(PODS.path(namespace, "q", "log"))
