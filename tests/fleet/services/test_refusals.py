"""What a member says of pods that it does not create reaches the handlers; other events are not even sent."""

import pytest

from fleet.core.members.observed import ObservedRefusal
from fleet.kube.resources import EVENTS, PYTORCH_JOBS
from fleet.models import Cluster
from fleet.services.members import event_handlers
from fleet.services.watching import manager
from tests.fleet.services.builders import Notes
from tests.support.members import api, eventually, join, serve

pytestmark = pytest.mark.django_db(transaction=True)


def say(server, name, kind="PyTorchJob", reason="FailedCreatePod", **fields):
    about = {"kind": kind, "namespace": "team", "name": "llama", "uid": "u1"}
    body = {"metadata": {"name": name, "namespace": "team"}, "involvedObject": about, "type": "Warning"}
    api(server).create(EVENTS.path("team"), {**body, "reason": reason, "message": f"{name} is forbidden", **fields})


def heard(notes) -> list[str]:
    return [refusal.message for refusal in notes.refusals]


class Listening(Notes):
    def __init__(self) -> None:
        super().__init__()
        self.refusals: list[ObservedRefusal] = []

    def on_refusals(self, cluster_id, refusals, now):
        self.refusals += refusals


def test_it_hands_over_refusals_that_were_there_before_and_that_come(north, watching):
    notes = Listening()
    event_handlers.register(notes)
    serve(north, PYTORCH_JOBS)
    say(north, "before")
    for kind in ("Pod", "Node"):
        say(north, f"of-a-{kind.lower()}", kind=kind)
    watching()
    row = join(north)
    eventually(lambda: heard(notes) == ["before is forbidden"])
    say(north, "harmless", reason="BackOff")
    say(north, "normal", type="Normal")
    say(north, "after")
    eventually(lambda: heard(notes) == ["before is forbidden", "after is forbidden"])
    assert notes.refusals[0] == ObservedRefusal(
        "team", "PyTorchJob", "llama", "u1", "FailedCreatePod", "before is forbidden"
    )
    eventually(lambda: Cluster.objects.get(pk=row.pk).watched_until)


def test_a_member_that_does_not_let_us_see_events_is_watched_without_them(north):
    row = join(north)
    refused = {"resource": "events", "verb": "list", "allowed": False}
    Cluster.objects.filter(pk=row.pk).update(permissions=[refused])
    assert EVENTS not in manager.watched_kinds(Cluster.objects.get(pk=row.pk))
