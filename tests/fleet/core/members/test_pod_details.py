"""What is kept of a pod to be shown: the same text for the same pod, in bounds whatever a member answers."""

import json

import pytest

from fleet.core.members import marks, observed
from fleet.core.members.pods import pod_details

SPEC = {"containers": [{"name": "main", "image": "train:1", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}


def kept(**manifest):
    return pod_details.parse(pod_details.read(manifest))


def test_it_keeps_labels_images_and_states():
    status = {
        "podIP": "10.0.0.1",
        "containerStatuses": [
            {"name": "main", "ready": True, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
        ],
    }
    details = kept(metadata={"labels": {"a": "b", marks.POD_MARK: "proof"}}, spec=SPEC, status=status)
    assert details["labels"] == {"a": "b"} and details["podIP"] == "10.0.0.1"
    [container] = details["containers"]
    assert (container["image"], container["ready"]) == ("train:1", True)
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "8"}}
    assert container["state"] == {"running": {"startedAt": "2026-01-01T00:00:00Z"}}


def test_a_container_that_is_about_to_start_changes_nothing():
    waiting = [{"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}]
    assert pod_details.read({"spec": SPEC, "status": {"containerStatuses": waiting}}) == pod_details.read(
        {"spec": SPEC}
    )


def test_it_is_bounded():
    labels = {f"key-{n}": "v" * 100 for n in range(10_000)}
    containers = [{"name": f"c{n}", "image": "i" * 10_000} for n in range(1000)]
    text = pod_details.read({"metadata": {"labels": labels}, "spec": {"containers": containers}})
    assert len(text) < 64 * 1024 and len(json.loads(text)["labels"]) == pod_details.LABELS


@pytest.mark.parametrize("rubbish", [None, 1, "text", [], [None], {"a": 1}, [{"name": {}, "state": [], "image": 1}]])
def test_it_takes_whatever_a_member_answers(rubbish):
    parts = ({"labels": rubbish, "containers": rubbish, "containerStatuses": rubbish, "podIP": rubbish}, rubbish)
    for part in parts:
        pod_details.read({"metadata": part, "spec": part, "status": part})


def test_it_keeps_nothing_that_a_typed_client_cannot_read():
    """One such value in one pod of one member would cost every reader the list of all."""
    ended = {"exitCode": 2**70, "startedAt": "yesterday", "finishedAt": "2026-13-01T00:00:00Z", "reason": "Error"}
    spec = {"containers": [{"name": "main", "resources": {"limits": {"cpu": "a lot", "memory": "1Gi"}}}]}
    status = {"containerStatuses": [{"name": "main", "restartCount": 2**70, "state": {"terminated": ended}}]}
    [container] = kept(spec=spec, status=status)["containers"]
    assert container["state"] == {"terminated": {"reason": "Error", "exitCode": 2**31 - 1}}
    assert container["restartCount"] == 2**31 - 1 and container["resources"] == {"limits": {"memory": "1Gi"}}


def test_text_that_no_database_holds_is_escaped():
    assert "\x00" not in pod_details.read({"status": {"podIP": "a\x00b\ud800"}})
    pod_details.read({"status": {"podIP": "a\ud800"}}).encode()


def test_a_row_of_an_older_version_has_none():
    assert pod_details.parse("") == {}
    assert observed.OwnPod.__dataclass_fields__["details"].default == ""
