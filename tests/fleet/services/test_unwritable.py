"""What a member says that no row can hold: it is left out by itself, said, and everything else is seen."""

import uuid

import pytest

from fleet.core.members import marks
from fleet.kube.resources import PODS, PYTORCH_JOBS
from fleet.models import Cluster, Event, Node, Pod
from fleet.services.members import event_handlers, signing
from tests.support.members import add_node, add_pod, api, eventually, join, serve

pytestmark = pytest.mark.django_db(transaction=True)
JOB = str(uuid.uuid4())
OURS = {marks.JOB_UID: JOB, marks.ATTEMPT: "1"}


def ours(row):
    """The labels of a pod that Convoy had made in that member."""
    return {**OURS, marks.POD_MARK: signing.sign_pods(row, JOB, 1, "team")}


def set_status(server, name, **status):
    api(server).merge_patch(PODS.path("team", name, "status"), {"status": status})


def test_it_sees_a_pod_whose_container_ended_with_a_nul_and_half_a_character(north, watching):
    add_node(north, "n1")
    watching()
    add_pod(north, "bad", "n1", labels=ours(join(north)))
    ended = {"reason": "Error", "message": "a\0b \ud800 c", "exitCode": 1}
    set_status(north, "bad", containerStatuses=[{"name": "main", "state": {"terminated": ended}}])
    row = eventually(lambda: Pod.objects.filter(name="bad").exclude(message="").first())
    assert row.message == "a\N{REPLACEMENT CHARACTER}b \N{REPLACEMENT CHARACTER} c"


def test_it_leaves_out_the_one_pod_that_cannot_be_stored_and_says_which(north, watching):
    add_node(north, "n1")
    watching()
    row = join(north)
    for name in ("good", "bad", "fine"):
        add_pod(north, name, "n1", labels=ours(row))
    eventually(lambda: Pod.objects.count() == 3)
    set_status(north, "bad", containerStatuses=[{"name": "main", "restartCount": 2**70}])
    eventually(lambda: "Pod team/bad" in str(Event.objects.filter(reason="ObjectUnreadable").values_list("message")))
    add_pod(north, "late", "n1", labels=ours(row))
    eventually(lambda: Pod.objects.filter(name="late").exists())
    assert Pod.objects.get(name="bad").restarts == 0
    assert Node.objects.get().requested["nvidia.com/gpu"] == 4
    eventually(lambda: Cluster.objects.get(pk=row.pk).watched_until)


class Choosy:
    """A follower that cannot read one of the objects."""

    def __init__(self):
        self.heard = set()

    def resources(self):
        return [PYTORCH_JOBS]

    def account_needs(self):
        return []

    def pod_role(self, kind, labels):
        return "", 0

    def on_update(self, cluster_id, resource, objects, now):
        self.heard |= {each["metadata"]["name"] for each in objects if int(each["spec"]["n"]) >= 0}

    def on_delete(self, *_):
        return ()

    expected = on_resync = on_pods_changed = on_refusals = on_delete


def test_it_hands_over_what_is_sound_when_one_object_is_not(north, watching):
    follower = Choosy()
    event_handlers.register(follower)
    serve(north, PYTORCH_JOBS)
    for name, number in (("a", "1"), ("b", "no number"), ("c", "3"), ("d", "4")):
        body = {"metadata": {"name": name, "namespace": "team", "labels": OURS}, "spec": {"n": number}}
        api(north).create(PYTORCH_JOBS.path("team"), body)
    watching()
    join(north)
    eventually(lambda: follower.heard == {"a", "c", "d"})
    eventually(
        lambda: "PyTorchJob team/b" in str(Event.objects.filter(reason="ObjectUnreadable").values_list("message"))
    )
