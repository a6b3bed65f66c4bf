"""Amounts by GPU model: what a tree may state of flavors, and what it is told about each thing it may not."""

import json

import pytest

from quotas.core.trees.flavors import FlavorChoice, flavors_of, node_flavor
from quotas.core.trees.parsing import parse_tree
from tests.quotas.core.builders import LEND, manifest, quota

GPU, H100, A100 = "nvidia.com/gpu", "nvidia.com/gpu:h100", "nvidia.com/gpu:a100"
LABEL = "nvidia.com/gpu.product"
TABLE = {"h100": {LABEL: "H100"}, "a100": {LABEL: "A100"}}
TOTAL = {GPU: 32, H100: 16, A100: 16}


def read(*children, total=TOTAL, table=TABLE, **attributes):
    stated = attributes if table is None else {"flavors": json.dumps(table), **attributes}
    return parse_tree(manifest(quota("root", total, total, *children, attributes=stated)))


def faults(*children, **fields):
    return {fault.field: fault.detail for fault in read(*children, **fields).faults}


def test_it_reads_amounts_of_each_flavor_beside_the_plain_name():
    tree = read(quota("a", {GPU: 4, H100: 4}, {GPU: 16, H100: 8}, attributes={"flavor-order": "h100, a100"})).tree
    leaf = tree.by_path["root/a"]
    assert leaf.min == {GPU: 4, H100: 4} and leaf.max == {GPU: 16, H100: 8}
    assert tree.flavors == TABLE and leaf.attributes.preference.order == ("h100", "a100")
    assert leaf.attributes.preference.when_can_borrow is FlavorChoice.STOP
    assert leaf.attributes.preference.when_can_preempt is FlavorChoice.NEXT
    assert {A100, H100, GPU} <= {*tree.resources}


def test_a_tree_without_flavors_has_the_resources_it_had():
    assert read(total={GPU: 8}, table=None).tree.resources == (GPU,)


@pytest.mark.parametrize(
    "name, message",
    [
        ("nvidia.com/gpu:v100", "names the flavor v100; those of the root are a100, h100"),
        ("cpu:h100", "only nvidia.com/gpu has flavors"),
    ],
)
def test_it_refuses_an_amount_of_no_flavor(name, message):
    assert faults(quota("a", None, {name: 4}))[f"spec.root.children[0].max.{name}"] == message


def test_it_refuses_amounts_of_flavors_without_a_table():
    message = faults(total={GPU: 8, H100: 8}, table=None)[f"spec.root.max.{H100}"]
    assert message.startswith("names the flavor h100, and the root has no attribute flavors, such as {")


@pytest.mark.parametrize(
    "table, message",
    [
        ("h100", "must be JSON such as"),
        ({"h100": "H100"}, "must be JSON such as"),
        ({"H100!": {LABEL: "H100"}}, "'H100!' is no name of a flavor"),
        ({"h100": {}}, "h100 has no labels"),
        ({"h100": {LABEL: 100}}, f"h100 has the value 100 for the label {LABEL}: it must be text"),
        ({"h100": {"not a key": "x"}}, "h100 has the key 'not a key', which is not a valid label key"),
        ({"h100": {LABEL: "x"}, "a100": {LABEL: "x"}}, "a node could be both a100 and h100"),
        ({"h100": {LABEL: "x"}, "a100": {"pool": "y"}}, "a node could be both a100 and h100"),
        ({f"f{i}": {LABEL: str(i)} for i in range(33)}, "has 33 flavors, more than 32"),
    ],
)
def test_it_refuses_a_table_that_does_not_tell_nodes_apart(table, message):
    assert message in faults(total={GPU: 8}, table=table)["spec.root.attributes.flavors"]


def test_only_the_root_has_a_table():
    child = quota("a", attributes={"flavors": json.dumps(TABLE)})
    assert "is for the root alone" in faults(child)["spec.root.children[0].attributes.flavors"]


def test_a_queue_below_may_only_narrow_the_order():
    inner = quota("t", None, None, quota("a", attributes={"flavor-order": "a100"}), attributes={"flavor-order": "h100"})
    where = "spec.root.children[0].children[0].attributes.flavor-order"
    assert (
        faults(inner)[where]
        == "root/t/a: must be names of flavors, such as h100: 'a100' is none that the quotas above allow"
    )
    child = quota("a", attributes={"flavor-order": "v100"})
    assert "'v100' is none" in faults(child)["spec.root.children[0].attributes.flavor-order"]


@pytest.mark.parametrize("key, value", [("flavor-order", "h100"), ("when-can-borrow", "TryNextFlavor")])
def test_it_refuses_preferences_among_flavors_where_there_are_none(key, value):
    child = quota("a", attributes={key: value})
    assert (
        "the root has no attribute flavors"
        in faults(child, total={GPU: 8}, table=None)[f"spec.root.children[0].attributes.{key}"]
    )


def test_where_flavors_have_a_min_no_other_gpus_are_promised():
    where = "spec.root.children[{}].min." + GPU
    both = quota("a", {GPU: 6, H100: 4, A100: 4}, {GPU: 8, H100: 8, A100: 8})
    assert "root/a has min 6 nvidia.com/gpu, and its flavors 8 together" in faults(both)[where.format(0)]
    assert (
        "has min none of nvidia.com/gpu, and its flavors 4" in faults(quota("a", {H100: 4}, {H100: 8}))[where.format(0)]
    )
    beside = quota("b", {GPU: 2}, {GPU: 8})
    one = quota("a", {GPU: 4, H100: 4}, {GPU: 8, H100: 8})
    assert "root/b has min 2 nvidia.com/gpu, and its flavors 0" in faults(one, beside)[where.format(1)]


def test_the_max_of_a_flavor_is_part_of_the_max_of_the_plain_name():
    message = faults(quota("a", None, {GPU: 4, H100: 8}))[f"spec.root.children[0].max.{H100}"]
    assert message == "root/a has max 8 nvidia.com/gpu:h100, more than its max 4 nvidia.com/gpu, which counts all"


def test_it_refuses_a_min_of_a_flavor_that_jobs_on_another_could_use_up():
    """Beside a max of 8 for all models, a job on 8 H100 leaves nothing for the min of A100, and no A100 to evict."""
    promised = quota("x", {GPU: 4, A100: 4}, {GPU: 8, A100: 8})
    team = quota("t", {GPU: 4, A100: 4}, {GPU: 8, A100: 8, H100: 8}, promised, quota("y"))
    message = faults(team)[f"spec.root.children[0].max.{GPU}"]
    assert "root/t may have 8 nvidia.com/gpu, less than its flavors may have together (a100 8, h100 8)" in message
    wide = quota("t", {GPU: 4, A100: 4}, {GPU: 8, A100: 4, H100: 4}, quota("x", {GPU: 4, A100: 4}, {GPU: 8, A100: 4}))
    assert faults(wide) == {}
    assert "a100 16, h100 without" in faults(promised, total={GPU: 20, A100: 16})[f"spec.root.max.{GPU}"]


def test_what_is_kept_back_beside_mins_of_flavors_is_of_flavors_too():
    child = quota("a", {GPU: 4, H100: 4}, {GPU: 8, H100: 8}, attributes={LEND: json.dumps({H100: 4})})
    assert (
        "keeps back 4 nvidia.com/gpu, and 0 of its flavors" in faults(child)[f"spec.root.children[0].attributes.{LEND}"]
    )
    child = quota("a", {GPU: 4, H100: 4}, {GPU: 8, H100: 8}, attributes={LEND: json.dumps({GPU: 2, H100: 2})})
    assert faults(child) == {}


def test_it_tells_nodes_and_amounts_by_their_flavor():
    assert node_flavor(TABLE, {LABEL: "A100", "zone": "a"}) == "a100"
    assert node_flavor(TABLE, {LABEL: "T4"}) == ""
    assert flavors_of({GPU: 8, H100: 8, A100: 0, "cpu": 4}) == {"h100": 8}
