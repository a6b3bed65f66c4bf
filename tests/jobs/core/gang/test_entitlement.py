"""A job's leaf, urgency and whether it may be taken back from, as its manifest says."""

import pytest

from jobs.core.gang.entitlement import PRIORITY, Priority, find_leaf, is_preemptible, priority_fault, priority_of
from tests.quotas.core.builders import quota, tree

LABEL = "quota.scheduling.alibabacloud.com/name"
TREE = tree(9, quota("a", 0, 9, namespaces=["ns-a"]), quota("b", 0, 9, namespaces=["ns-b"]), quota("open", 0, 9))


@pytest.mark.parametrize(
    ("namespace", "labels", "leaf"),
    [
        ("ns-a", {}, "root/a"),
        ("ns-a", {LABEL: "open"}, "root/open"),
        ("nowhere", {LABEL: "open"}, "root/open"),
        ("ns-a", {LABEL: "a"}, "root/a"),
        ("ns-a", {"quota.scheduling.koordinator.sh/name": "open"}, "root/open"),
        ("nowhere", {}, ""),
    ],
)
def test_it_finds_the_leaf_by_label_and_else_by_namespace(namespace, labels, leaf):
    assert find_leaf(TREE, namespace, labels) == find_leaf(TREE, namespace, labels).__class__(leaf)


@pytest.mark.parametrize(("namespace", "named"), [("ns-a", "b"), ("nowhere", "b"), ("ns-a", "gone")])
def test_it_gives_no_leaf_to_one_that_names_what_is_not_its_own(namespace, named):
    found = find_leaf(TREE, namespace, {LABEL: named})
    assert found.leaf == "" and named in found.fault


def test_it_keeps_one_where_it_was_moved_while_that_leaf_stands():
    assert find_leaf(TREE, "ns-a", {LABEL: "a"}, pinned="root/b").leaf == "root/b"
    assert find_leaf(TREE, "ns-a", {}, pinned="root/gone").leaf == "root/a"


def test_it_asks_nobody_for_a_leaf_without_a_tree():
    assert find_leaf(None, "ns-a", {LABEL: "gone"}).fault == ""


@pytest.mark.parametrize(("said", "soft"), [("false", False), ("true", True), ("no", True)])
def test_it_may_be_taken_back_from_unless_it_says_false(said, soft):
    assert is_preemptible({"quota.scheduling.alibabacloud.com/preemptible": said}) is soft


def pod(**spec) -> tuple[str, dict]:
    return ("worker", {"spec": spec})


def worth(annotations=None, spec=None, *pods: tuple[str, dict], **classes: int) -> Priority:
    return priority_of(annotations or {}, spec or {}, pods, classes)


def test_it_takes_the_priority_a_job_says_before_that_of_its_pods():
    pods = [pod(priority=7), pod(priorityClassName="system-node-critical")]
    assert worth({PRIORITY: "-5"}, {}, *pods).value == -5
    assert worth({}, {}, *pods).value == 2_000_001_000
    assert worth({}, {}, pods[0]).value == 7 and worth({}, {}, pod()) == Priority(0)


def run_class(name: object) -> dict:
    return {"runPolicy": {"schedulingPolicy": {"priorityClass": name}}}


@pytest.mark.parametrize("spec", [run_class("high"), {"priorityClassName": "high"}])
def test_it_takes_the_class_of_the_gang_before_those_of_its_pods(spec):
    assert worth({}, spec, pod(priorityClassName="low"), high=10, low=99) == Priority(10, highest_class=99)


def test_it_takes_the_most_that_the_classes_of_its_pods_are_worth():
    assert worth({}, {}, pod(priorityClassName="low"), pod(priorityClassName="high"), high=10, low=1) == Priority(
        10, (), 10
    )


def test_it_names_every_class_without_a_value_whatever_else_the_job_states():
    assert worth({}, run_class("best")) == Priority(0, ("best",))
    assert worth({}, {}, pod(priorityClassName="best"), pod(priority=3, priorityClassName="odd")) == Priority(
        3, ("best", "odd")
    )
    assert worth({PRIORITY: "1"}, run_class("best")) == Priority(1, ("best",))
    assert worth({PRIORITY: "1"}, run_class("high"), high=10) == Priority(1, (), 10)


@pytest.mark.parametrize("spec", [{"runPolicy": "x"}, {"runPolicy": {"schedulingPolicy": 3}}, run_class(7)])
def test_it_makes_nothing_of_a_class_that_is_no_text(spec):
    assert worth({}, spec) == Priority(0)


@pytest.mark.parametrize("said", ["high", "1.5", "", "99999999999", 7])
def test_it_refuses_a_priority_that_is_no_number(said):
    assert "must be a whole number" in priority_fault(said)
