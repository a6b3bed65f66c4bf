"""Which reports of a member are written without waiting for more: those after which a waiting job may start."""

import uuid

import pytest
from django.utils import timezone

from fleet.core.members import marks, observed
from fleet.kube.resources import CRDS, NODES, PODS, PYTORCH_JOBS
from fleet.member.watching import Changed, Item, Listed
from fleet.services.members import event_handlers
from fleet.services.watching import reports
from tests.fleet.services.builders import Notes

LABELS = {marks.JOB_UID: str(uuid.uuid4()), marks.ATTEMPT: "1"}


def changed(resource, value, *, gone=False):
    return Changed(resource, Item(("team", "a"), value), gone)


def pod(phase, node="n1"):
    body = {"metadata": {"namespace": "team", "name": "a"}, "spec": {"nodeName": node}, "status": {"phase": phase}}
    return changed(PODS, observed.pod(body, lambda *_: ("", 0), lambda *_: False))


def job(**status):
    return changed(PYTORCH_JOBS, {"metadata": {"labels": LABELS}, "status": status})


@pytest.fixture(autouse=True)
def handler(monkeypatch):
    """An object has ended, by its word, once it has a time of completion."""
    monkeypatch.setattr(event_handlers, "_handlers", [Notes()])


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_the_end_of_a_pod_is_urgent_where_it_had_a_node(phase):
    assert reports.is_urgent(pod(phase)) and not reports.is_urgent(pod(phase, node=""))


def test_what_a_pod_does_as_it_starts_is_not():
    assert not any(
        reports.is_urgent(pod(phase, node)) for phase, node in (("Pending", ""), ("Pending", "n1"), ("Running", "n1"))
    )


def test_the_end_of_an_object_of_ours_is_urgent_and_its_start_is_not():
    assert reports.is_urgent(job(completionTime="2026-11-01T00:00:00Z")) and not reports.is_urgent(job())


def test_a_status_that_cannot_be_read_is_not_urgent():
    assert not reports.is_urgent(changed(PYTORCH_JOBS, {"metadata": {}, "status": 7}))


def test_what_was_deleted_and_whole_lists_are_urgent():
    assert reports.is_urgent(changed(PODS, pod("Running").item.value, gone=True))
    assert reports.is_urgent(Listed(NODES, []))
    assert not reports.is_urgent(changed(CRDS, None))


class Follower(Notes):
    """Looks at the pods of one attempt together with its object."""

    followed = (uuid.UUID(int=1), 1)

    def on_update(self, cluster_id, resource, objects, now):
        super().on_update(cluster_id, resource, objects, now)
        return {self.followed}


def test_the_pods_of_an_attempt_are_not_looked_at_twice(monkeypatch):
    notes, other = Follower(), (uuid.UUID(int=2), 1)
    monkeypatch.setattr(event_handlers, "_handlers", [notes])
    batch = reports.Batch(present={("team", "a"): {"metadata": {"name": "a"}}})
    reports.deliver(1, {PYTORCH_JOBS: batch}, {notes.followed, other}, timezone.now())
    assert notes.heard == [("observed", "a"), ("pods", {other})]
