"""What a watch says of an object that is gone: what it was last, as a real API server does, in bounded memory."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone

from fleet.changes.journal import Action
from fleet.kube.resources import PODS, PYTORCH_JOBS
from fleet.kubeapi.objects.kinds import Change
from fleet.kubeapi.objects.last_known import LastKnown
from fleet.kubeapi.objects.pods import Pods
from jobs.models import Job
from jobs.services.submission import manifests, submit
from jobs.services.submission.changes import actions
from tests.fleet.kubeapi.builders import Member, a_pod
from tests.support.kubectl import client_of, served
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
KIND = Pods()


@pytest.fixture
def kubectl(transactional_db: Any, admin: Any, tmp_path: Any) -> Iterator[Any]:
    with served(tmp_path) as made:
        yield made


@pytest.fixture
def ada(kubectl: Any) -> Any:
    return kubectl.as_user("ada")


def apply(name: str) -> None:
    submit.apply(manifests.parse(pytorch_job(name).encode()), by="test", now=timezone.now())


def delete(name: str) -> None:
    actions.delete(Job.objects.get(name=name), by="test", now=timezone.now())


def printed_of(watching: Any, type_: str) -> list[str]:
    """The first line of that type."""
    while True:
        line: str = watching.stdout.readline()
        assert line, "the watch ended"
        if line.split()[0] == type_:
            return line.split()[1:]


@pytest.mark.parametrize("selected", [(), ("-l", "team=x")])
def test_kubectl_prints_a_pod_that_goes_as_it_was_last(ada: Any, selected: tuple[str, ...]) -> None:
    north = Member("north")
    north.pods(a_pod("a", team="x"), a_pod("other", team="y"))
    with ada.running("get", "pods", *selected, "-w", "--output-watch-events", "--no-headers") as watching:
        assert printed_of(watching, "ADDED")[0] == "a.north"
        pod = a_pod("b", team="x", phase="Pending")
        north.pods(pod)
        while printed_of(watching, "ADDED")[0] != "b.north":
            pass
        north.lose_pod("a")
        assert printed_of(watching, "DELETED")[:4] == ["a.north", "1/1", "Running", "2"]
        north.lose_pod("b")
        gone = printed_of(watching, "DELETED")
        assert gone[:4] == ["b.north", "0/1", "ContainerCreating", "0"] and gone[4].endswith("d")


def test_kubectl_prints_a_job_that_goes_as_it_was_last(ada: Any) -> None:
    apply("llama")
    with ada.running("get", "pytorchjobs", "-w", "--output-watch-events", "--no-headers") as watching:
        assert printed_of(watching, "ADDED")[:2] == ["llama", "Created"]
        apply("bert")
        assert printed_of(watching, "ADDED")[:2] == ["bert", "Created"]
        for name in ("llama", "bert"):
            delete(name)
            shown = printed_of(watching, "DELETED")
            assert shown[:2] == [name, "Created"] and shown[2].rstrip("sm").isdigit()


def test_a_client_gets_the_whole_object_with_the_version_of_its_deletion(kubectl: Any) -> None:
    north, client = Member("north"), client_of(kubectl.as_user("ada").file)
    north.pods(a_pod("a", team="x"))
    told = client.watch(PODS.path(), resource_version="", timeout_s=60)
    there = next(told).object
    north.lose_pod("a")
    gone = next(told)
    assert gone.type == "DELETED"
    assert int(gone.object["metadata"].pop("resourceVersion")) > int(there["metadata"].pop("resourceVersion"))
    assert gone.object == there


def test_a_job_that_left_its_selector_before_it_went_is_still_told_to_who_may_have_listed_it(kubectl: Any) -> None:
    client = client_of(kubectl.as_user("ada").file)
    labelled = pytorch_job("llama").replace("name: llama", "name: llama\n  labels: {team: vision}")
    submit.apply(manifests.parse(labelled.encode()), by="test", now=timezone.now())
    since = next(client.watch(PYTORCH_JOBS.path(), resource_version="", timeout_s=60)).object["metadata"]
    submit.apply(manifests.parse(labelled.replace("vision", "speech").encode()), by="test", now=timezone.now())
    delete("llama")
    everything = client.watch(PYTORCH_JOBS.path(), resource_version=since["resourceVersion"], timeout_s=60)
    assert next(everything).type == "DELETED"
    asked = {"labelSelector": "team=vision"}
    told = client.watch(PYTORCH_JOBS.path(), resource_version=since["resourceVersion"], timeout_s=60, params=asked)
    assert next(told).type == "DELETED"


def change(uid: str, size: int | None) -> Change:
    shown = None if size is None else {"metadata": {"uid": uid}, "text": "x" * size}
    return Change(1, Action.MODIFIED if shown else Action.DELETED, "default", uid, uid, shown)


def lasts(known: LastKnown, *uids: str) -> list[int | None]:
    """The lengths of what is known of them."""
    changes = known.with_last(KIND, [change(uid, None) for uid in uids])
    return [len(each.last["text"]) if each.last else None for each in changes]


def test_it_keeps_what_changed_last_within_its_room() -> None:
    known = LastKnown(room=1000)
    known.with_last(KIND, [change("a", 300), change("b", 300), change("a", 310), change("c", 300)])
    assert lasts(known, "a", "b", "c") == [310, None, 300]
    known.with_last(KIND, [change("d", 2000)])
    assert lasts(known, "a", "c", "d") == [None, None, None]


def test_it_forgets_a_kind_that_nobody_follows() -> None:
    known = LastKnown()
    known.with_last(KIND, [change("a", 3)])
    known.forget(KIND)
    assert lasts(known, "a") == [None]
