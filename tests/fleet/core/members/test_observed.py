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


WAITS = {"waiting": {"reason": "PodInitializing"}}
BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container"}}
NO_IMAGE = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x"'}}


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ({"running": {}}, WAITS, ("Init:0/2", "init container fetch: runs")),
        (BACK_OFF, WAITS, ("Init:CrashLoopBackOff", "init container fetch: back-off 10s restarting failed container")),
        (NO_IMAGE, WAITS, ("Init:ImagePullBackOff", 'init container fetch: Back-off pulling image "x"')),
        ({"terminated": {"exitCode": 0}}, {"running": {}}, ("Init:1/2", "init container check: runs")),
        (
            {"terminated": {"exitCode": 3, "reason": "Error"}},
            WAITS,
            ("Init:Error", "init container fetch: exit code 3"),
        ),
        ({"terminated": {"exitCode": 0}}, {"terminated": {"exitCode": 0}}, ("", "")),
    ],
)
def test_a_pod_stuck_in_its_init_containers_says_so_as_kubectl_does(first, second, why):
    own = initialising(first, second)
    assert (own.reason, own.message) == why


def initialising(first, second, main=None, conditions=(), **of_the_first):
    names = ("fetch", "check")
    status = {
        "initContainerStatuses": [
            {"name": "fetch", "state": first, **of_the_first},
            {"name": "check", "state": second},
        ],
        "containerStatuses": [{"name": "main", "state": main or WAITS}],
        "conditions": list(conditions),
    }
    containers = [{"name": name} for name in names]
    containers[0] |= {"restartPolicy": "Always"} if of_the_first else {}
    spec = {"nodeName": "n1", "containers": [{"name": "main"}], "initContainers": containers}
    manifest = {"metadata": {"name": "a", "namespace": "team", "labels": OURS}, "spec": spec, "status": status}
    return observed.pod(manifest, role_of, lambda *_: True).own


def test_a_sidecar_that_runs_does_not_hide_why_the_pod_waits():
    own = initialising({"running": {}}, {"terminated": {"exitCode": 0}}, NO_IMAGE, started=True)
    assert (own.reason, own.message) == ("ImagePullBackOff", 'Back-off pulling image "x"')


def test_beside_a_sidecar_that_runs_the_message_is_of_the_init_container_that_does_not_start():
    own = initialising({"running": {}}, NO_IMAGE, started=True)
    assert (own.reason, own.message) == ("Init:ImagePullBackOff", 'init container check: Back-off pulling image "x"')


def test_a_pod_whose_init_containers_are_done_is_not_initialising_when_its_sidecar_dies():
    done = {"type": "Initialized", "status": "True"}
    own = initialising(BACK_OFF, {"terminated": {"exitCode": 0}}, NO_IMAGE, [done], started=False)
    assert (own.reason, own.message) == ("ImagePullBackOff", 'Back-off pulling image "x"')


@pytest.mark.parametrize("statuses", [7, [7], [{}], [{"state": {"waiting": 7}}], [{"state": {"terminated": [1]}}]])
def test_init_containers_that_are_unsound_are_no_error(statuses):
    manifest = {
        "metadata": {"name": "a", "namespace": "team", "labels": OURS},
        "spec": {"initContainers": [{}]},
        "status": {"initContainerStatuses": statuses},
    }
    assert observed.pod(manifest, role_of, lambda *_: True).own


def test_it_leaves_out_amounts_it_cannot_read():
    seen = observed.node({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "x", "gpu": "8"}}})
    assert (seen.allocatable, seen.usable) == ({"gpu": 8}, False)


def test_it_survives_an_empty_manifest():
    assert observed.pod({"metadata": None, "spec": []}, role_of, lambda *_: True).counts is False
