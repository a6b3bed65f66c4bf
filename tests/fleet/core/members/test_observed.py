"""What is read out of members' manifests, sound or not."""

from uuid import UUID

import pytest

from fleet.core.members import marks, observed

JOB = "6a1f2b5e-0000-4000-8000-000000000000"
OURS = {marks.JOB_UID: JOB, marks.ATTEMPT: "2", "replica": "3"}


def role_of(owner, labels):
    return owner.lower(), int(labels.get("replica", 0))


def pod(labels=OURS, phase="Running", node="n1", **status):
    return observed.pod(
        {
            "metadata": {
                "name": "a",
                "namespace": "team",
                "labels": labels,
                "ownerReferences": [{"kind": "PyTorchJob", "controller": True}],
            },
            "spec": {"nodeName": node, "containers": [{"resources": {"limits": {"gpu": 1}}}]},
            "status": {"phase": phase, **status},
        },
        role_of,
        lambda *_: True,
    )


def test_it_knows_our_pods_by_their_labels():
    own = pod().own
    assert (own.mark.job_uid, own.mark.attempt, own.role, own.index) == (UUID(JOB), 2, "pytorchjob", 3)


@pytest.mark.parametrize(
    "labels",
    [{}, {marks.JOB_UID: "x", marks.ATTEMPT: "1"}, {marks.JOB_UID: JOB}, {**OURS, marks.ATTEMPT: "9" * 30}],
)
def test_it_takes_no_pod_for_ours_whose_marks_are_unsound(labels):
    assert pod(labels).own is None


@pytest.mark.parametrize(
    ("phase", "node", "request_"),
    [("Running", "n1", {"gpu": 1, "pods": 1}), ("Pending", "n1", {"gpu": 1, "pods": 1}), ("Pending", "", {}),
     ("Succeeded", "n1", {}), ("Failed", "n1", {})],
)  # fmt: skip
def test_it_counts_bound_unfinished_pods(phase, node, request_):
    assert pod(phase=phase, node=node).request == request_


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({"reason": "Evicted", "message": "disk"}, ("Evicted", "disk")),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}, ("ImagePullBackOff", "")),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}, ("", "")),
        (
            {"containerStatuses": [{"state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]},
            ("OOMKilled", "exit code 137"),
        ),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}]},
            ("Unschedulable", "0/3"),
        ),
    ],
)
def test_it_gives_the_most_telling_reason(status, why):
    own = pod(**status).own
    assert (own.reason, own.message) == why


def test_it_leaves_out_amounts_it_cannot_read():
    seen = observed.node({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "x", "gpu": "8"}}})
    assert (seen.allocatable, seen.usable) == ({"gpu": 8}, False)


def test_it_survives_an_empty_manifest():
    assert observed.pod({"metadata": None, "spec": []}, role_of, lambda *_: True).counts is False
