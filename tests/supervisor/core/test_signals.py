"""Each source of a reclaim, as its provider writes it."""

import pytest

from supervisor.core import signals
from supervisor.core.signals import NOTICE_S, Signal


def node(*, taints=(), conditions=(), **meta):
    return {
        "metadata": {"name": "n1", **meta},
        "spec": {"taints": list(taints)},
        "status": {"conditions": list(conditions)},
    }


@pytest.mark.parametrize(
    ("key", "cause", "notice_s"),
    [
        ("aws-node-termination-handler/spot-itn", "aws-spot", 120),
        ("aws-node-termination-handler/scheduled-maintenance", "aws-scheduled", 120),
        ("cloud.google.com/impending-node-termination", "gcp-termination", 30),
        ("remediator.aks.microsoft.com/unschedulable", "azure-eviction", 30),
        ("remediator.kubernetes.azure.com/unschedulable", "azure-eviction", 30),
    ],
)
def test_it_knows_the_taints_of_providers(key, cause, notice_s):
    signal = signals.of_node(node(taints=[{"key": key, "effect": "NoSchedule"}]))
    assert signal == Signal(cause, "n1")
    assert signal.due(1000.0, NOTICE_S) == 1000.0 + notice_s


def test_it_knows_the_condition_of_ack_on_a_node():
    due = {"type": "InstanceExpired", "status": "True", "reason": "InstanceToBeTerminated"}
    assert signals.of_node(node(conditions=[due])) == Signal("ack-spot", "n1")
    assert signals.of_node(node(conditions=[{**due, "status": "False"}])) is None
    assert signals.of_node(node(conditions=[{**due, "reason": "InstanceNotToBeTerminated"}])) is None


def test_it_knows_the_condition_of_an_elastic_container_instance():
    pod = {
        "spec": {"nodeName": "v"},
        "status": {"conditions": [{"type": "ContainerInstanceExpired", "status": "True"}]},
    }
    assert signals.of_pod(pod) == Signal("eci-spot", "v")


def test_it_reads_the_deadline_of_the_simulators_taint():
    taint = {"key": signals.RECLAIM_TAINT, "value": "1800000030", "effect": "NoSchedule"}
    assert signals.of_node(node(taints=[taint])) == Signal("reclaim", "n1", 1_800_000_030.0)


@pytest.mark.parametrize("value", [None, "", "soon", "-5", "99999999999999999999", "１８"])
def test_it_gives_a_reclaim_without_a_readable_deadline_the_shortest_notice(value):
    signal = signals.of_node(node(taints=[{"key": signals.RECLAIM_TAINT, "value": value}]))
    assert signal is not None and signal.due(50.0, NOTICE_S) == 80.0


def test_it_takes_a_node_that_is_being_deleted_for_one_that_goes():
    assert signals.of_node(node(deletionTimestamp="2026-11-23T18:00:00Z")) == Signal(signals.NODE_DELETED, "n1")


def test_it_hears_the_word_of_the_fleet_on_a_pod():
    pod = {"metadata": {"annotations": {signals.RECLAIM_UNTIL: "2027-01-15T08:00:30Z"}}, "spec": {"nodeName": "n1"}}
    assert signals.of_pod(pod) == Signal(signals.FLEET, "n1", 1_800_000_030.0)


def test_it_counts_the_grace_period_from_when_the_disruption_was_decided():
    condition = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "2027-01-15T08:00:00Z"}
    pod = {"spec": {"terminationGracePeriodSeconds": 45}, "status": {"conditions": [condition]}}
    signal = signals.of_pod(pod)
    assert signal is not None and signal.deadline == 1_800_000_045.0


def test_it_takes_the_signal_that_is_due_first():
    taints = [{"key": signals.RECLAIM_TAINT, "value": str(value)} for value in (1_800_000_090, 1_800_000_030)]
    signal = signals.of_node(node(taints=taints))
    assert signal is not None and signal.deadline == 1_800_000_030.0


@pytest.mark.parametrize(
    "broken", [{}, {"spec": None}, {"spec": {"taints": "x"}}, {"status": {"conditions": [3, None]}}]
)
def test_it_reads_nothing_of_what_is_not_sound(broken):
    assert signals.of_node(broken) is None
    assert signals.of_pod(broken) is None
