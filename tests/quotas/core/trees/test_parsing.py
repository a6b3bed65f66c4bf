"""Which trees are taken and which are refused, and with which words. Numbers are those of the sources' own tables.

Sources: ACK's documentation of the tree (A), Koordinator's quota webhook tests (K, quota_topology_test), and the closed
list of rules in docs/proposals/0002-quotas.md; numbers as in 0003-reclaim.md.
"""

import json

import pytest
import yaml

from quotas.core.trees.parsing import parse_tree
from quotas.core.trees.tree import NoQuota, PreemptPolicy, QueuePolicy
from tests.quotas.core.builders import LEND, manifest, quota, tree

SEED = """
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {name: elasticquotatree, namespace: kube-system}
spec:
  root:
    name: root
    max: {cpu: 999900, memory: 400000Gi, kube-queue/max-jobs: 10000000000, nvidia.com/gpu: 100000}
    min: {cpu: 999900, memory: 400000Gi, kube-queue/max-jobs: 10000000000, nvidia.com/gpu: 100000}
    children:
      - name: child-2
        max: {kube-queue/max-jobs: 1, cpu: 10000, nvidia.com/gpu: 10000, memory: 10000Gi}
        namespaces: [default]
"""


def faults(*children, total=20, **fields):
    reading = parse_tree(manifest(quota("root", total, total, *children, **fields)))
    return [f"{fault.field}: {fault.detail}" for fault in reading.faults]


def test_it_takes_the_tree_of_the_documentation_unchanged():
    read_tree = parse_tree(yaml.safe_load(SEED)).tree
    assert [node.path for node in read_tree.nodes] == ["root", "root/child-2"]
    assert read_tree.leaf_of("default", {}).max["cpu"] == 10_000_000
    assert read_tree.leaf_of("default", {}).min == {}


NORTH = {"cluster-affinity": "north"}

REFUSED = {
    "case 24 (Koordinator) min above max": (
        [quota("a", 12, 10)],
        "min.cpu: root/a has min 12 cpu, more than its max 10 cpu",
    ),
    "case 25 (Koordinator) min without max": ([quota("a", 1)], "min.cpu: root/a has min 1 cpu and no max of it"),
    "case 26 (Koordinator) negative": ([quota("a", -1, 10)], "min.cpu: -1 is negative"),
    "case 27 (Koordinator) children above the parent": (
        [quota("a", 10, 20, quota("b", 8, 10), quota("c", 8, 10))],
        "min.cpu: the children of root/a have min 16 cpu together, more than its 10 cpu",
    ),
    "case 28 (Koordinator, ACK) a namespace in two leaves": (
        [quota("a", namespaces=["vision"]), quota("b", namespaces=["vision"])],
        "spec.root.children[1].namespaces[0]: vision is in root/a already",
    ),
    "case 31 (ACK) namespaces on an inner node": (
        [quota("a", None, None, quota("b"), namespaces=["x"])],
        "only leaves",
    ),
    "case 31 (ACK) child above the parent": (
        [quota("a", 1, 21)],
        "max.cpu: root/a has max 21 cpu, more than root may have: 20",
    ),
    "above an ancestor past a silent one": ([quota("a", None, None, quota("b", 0, 30))], "root/a/b has max 30 cpu"),
    "same name twice": ([quota("a"), quota("a")], "children[1].name: root has a child a already"),
    "unknown field": ([quota("a", maxx={"cpu": 1})], "maxx: is no field of a quota"),
    "half a device": ([quota("a", {}, {"nvidia.com/gpu": "500m"})], "finer than 1"),
    "two spellings": ([quota("a", {}, {"koord-queue/max-jobs": 1, "kube-queue/max-jobs": 1})], "another spelling"),
    "no quantity": ([quota("a", {}, {"cpu": "many"})], "max.cpu: 'many' is not a quantity"),
    "bad name": ([quota("a/b")], "children[0].name: must be at most 63 letters"),
    "lends more than it has": ([quota("a", 1, 2, attributes={LEND: '{"cpu": 2}'})], "lends 2 cpu, more than its min 1"),
    "lends nonsense": ([quota("a", 1, 2, attributes={LEND: "[" * 5000})], "must be JSON"),
    "negative weight": ([quota("a", attributes={"weight": "-1"})], "weight: root/a: must be a number from 0"),
    "weight with too many decimals": (
        [quota("a", attributes={"weight": "0.1234"})],
        "weight: root/a: must be a number from 0",
    ),
    "no cluster's name": (
        [quota("a", attributes={"cluster-affinity": "north,,x"})],
        "root/a: must be names of clusters",
    ),
    "no cluster is left": (
        [quota("a", None, None, quota("b", attributes=NORTH), attributes={"cluster-affinity": "south"})],
        "root/a/b: names north, and the quotas above allow only south: no cluster is left",
    ),
    "classes of nonsense": (
        [quota("a", attributes={"priority-classes": "high"})],
        "priority-classes: root/a: must be JSON",
    ),
    "class worth a word": (
        [quota("a", attributes={"priority-classes": '{"high": "1"}'})],
        "high must be a whole number up to 1000000000, not '1'",
    ),
    "class without a name": (
        [quota("a", attributes={"priority-classes": '{"High": 1}'})],
        "'High' is no name of a Prio",
    ),
    "unknown policy": ([quota("a", attributes={"queue-policy": "Fifo"})], "one of Priority, Block, Round"),
}


@pytest.mark.parametrize(("children", "told"), REFUSED.values(), ids=REFUSED.keys())
def test_it_refuses_a_broken_rule_with_the_path_and_the_numbers_case_24_to_28_and_31(children, told):
    assert any(told in fault for fault in faults(*children)), faults(*children)


def test_it_takes_children_whose_min_the_parent_covers_case_27_accepted():
    # K27, its accepted half.
    assert tree(40, quota("a", 19, 40, quota("b", 16, 20))).by_path["root/a/b"].min == {"cpu": 16_000}


def test_it_refuses_a_root_whose_min_is_not_its_max():
    # A: the root is the total.
    reading = parse_tree(manifest(quota("root", 10, {"cpu": 10, "pods": 5})))
    assert [fault.field for fault in reading.faults] == ["spec.root.max.pods"]
    assert "min is none, max is 5 pods" in reading.faults[0].detail


def test_it_compares_amounts_and_not_texts():
    assert parse_tree(manifest(quota("root", {"cpu": "2000m"}, {"cpu": 2}))).faults == ()


def test_it_tells_everything_at_once():
    assert len(faults(quota("a", 12, 10), quota("b", 1), quota("b", 0, 99))) == 4


def test_it_refuses_another_namespace_kind_and_root_name():
    reading = parse_tree({**manifest(quota("top", 1, 1), namespace="default"), "kind": "ElasticQuota"})
    assert [fault.field for fault in reading.faults] == ["kind", "metadata.namespace", "spec.root.name"]


@pytest.mark.parametrize(
    "spec", [None, [], "x", {}, {"root": None}, {"root": {"children": {"a": 1}}}, {"root": {1: 2}}]
)
def test_it_refuses_what_is_no_tree_at_all(spec):
    assert parse_tree({**manifest({}), "spec": spec}).faults


def test_it_refuses_a_bottomless_tree():
    deep = quota("leaf")
    for _ in range(12):
        deep = quota("n", None, None, deep)
    assert any("deeper trees are refused" in fault for fault in faults(deep))


def test_it_keeps_two_leaves_of_one_name_apart_by_their_paths_case_12():
    # A12: koord-queue accepts both and charges the wrong one.
    found = tree(20, quota("a", 0, 5, quota("x", namespaces=["n1"])), quota("b", 0, 5, quota("x", namespaces=["n2"])))
    assert (found.leaf_of("n1", {}).path, found.leaf_of("n2", {}).path) == ("root/a/x", "root/b/x")


def test_it_finds_a_leaf_by_label_before_namespace_case_10():
    # A10: koord-queue, elastic_quota_tree_test.
    found = tree(20, quota("a", namespaces=["n1"]), quota("b", namespaces=["n2"]))
    assert found.leaf_of("n1", {"quota.scheduling.koordinator.sh/name": "b"}).path == "root/b"


def test_it_finds_no_leaf_for_a_stranger_case_11():
    # A11: koord-queue, elastic_quota_tree_test.
    found = tree(20, quota("a", None, None, quota("x")), quota("b", None, None, quota("x")))
    label = "quota.scheduling.alibabacloud.com/name"
    assert isinstance(found.leaf_of("elsewhere", {}), NoQuota)
    assert "no leaf" in found.leaf_of("elsewhere", {label: "a"}).message
    assert "root/a/x, root/b/x" in found.leaf_of("elsewhere", {label: "x"}).message


def test_it_reads_attributes_and_warns_of_those_that_do_nothing():
    stated = {LEND: json.dumps({"cpu": "2"}), "weight": "3", "preempt-policy": "PreemptLowerPriority", "colour": "red"}
    reading = parse_tree(manifest(quota("root", 9, 9, quota("a", 4, 8, attributes=stated))))
    read_attributes = reading.tree.by_path["root/a"].attributes
    assert (read_attributes.lendlimit, read_attributes.weight) == ({"cpu": 2000}, 3)
    assert read_attributes.preempt_policy is PreemptPolicy.LOWER_PRIORITY
    assert reading.warnings == ("spec.root.children[0].attributes.colour of root/a is kept but not acted upon",)


def test_it_has_one_tree_and_knows_no_other_by_an_id_case_30():
    # K30: Koordinator refuses to change the tree-id. There is one tree here, so the id says nothing, and that is told.
    reading = parse_tree(
        manifest(quota("root", 9, 9, quota("a", attributes={"quota.scheduling.koordinator.sh/tree-id": "x"})))
    )
    assert reading.tree is not None and len(reading.warnings) == 1


def test_it_passes_the_queue_policy_down():
    found = tree(9, quota("a", None, None, quota("b")), attributes={"queue-policy": "Block"})
    assert found.by_path["root/a/b"].attributes.queue_policy is QueuePolicy.BLOCK


def test_it_passes_the_allowed_clusters_down_and_only_narrows_them():
    stated = {"cluster-affinity": "north, south"}
    children = [quota("b"), quota("c", attributes={"cluster-affinity": "east,south"})]
    found = tree(9, quota("a", None, None, *children, attributes=stated), quota("d"))
    told = {node.name: node.attributes.cluster_affinity for node in found.nodes}
    assert told == {"root": (), "a": ("north", "south"), "b": ("north", "south"), "c": ("south",), "d": ()}


def test_it_passes_the_worth_of_priority_classes_down_where_it_may_be_changed():
    own = {"priority-classes": '{"high": 5}'}
    top = {"priority-classes": '{"high": 10, "low": -1}'}
    found = tree(20, quota("a", attributes=own), quota("b"), attributes=top).by_path
    assert found["root/a"].attributes.priority_classes == {"high": 5, "low": -1}
    assert found["root/b"].attributes.priority_classes == {"high": 10, "low": -1}
