"""What is removed with a copy may change in the member between the look at it and its deletion."""

import pytest

from fleet.core.members import marks
from fleet.kube.resources import CONFIG_MAPS, RESERVATIONS
from fleet.member.errors import MemberChanged
from jobs.kinds.pods import Reference
from jobs.services.dispatch.members import dependents, reservations
from tests.support import books
from tests.support.passive import passive_member
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def north(tmp_path):
    with passive_member(tmp_path, serves={"reservations.scheduling.koordinator.sh": "v1alpha1"}) as member:
        yield member.client


def changing(client, path):
    """A client beside which the member changes the object once, right before the first write."""
    left = [path]

    def change():
        if left:
            client.merge_patch(left.pop(), {"metadata": {"annotations": {"seen": "by its controller"}}})

    return client.fenced(change, lambda: None)


def test_a_reservation_that_its_scheduler_changes_meanwhile_is_removed_by_the_next_try(north):
    of_job = {marks.JOB_UID: "some-uid", marks.ATTEMPT: "1"}
    for name in ("pod-0", "pod-1"):
        body = {
            "apiVersion": RESERVATIONS.api_version,
            "kind": "Reservation",
            "metadata": {"name": name, "labels": of_job},
        }
        north.create(RESERVATIONS.path(), {**body, "spec": {"template": {}, "owners": [], "ttl": "24h"}})
    with pytest.raises(MemberChanged):
        reservations.remove(changing(north, RESERVATIONS.path(name="pod-0")), "some-uid", 1)
    assert [each["metadata"]["name"] for each in north.list(RESERVATIONS.path())["items"]] == ["pod-0"]
    reservations.remove(north, "some-uid", 1)
    assert not north.list(RESERVATIONS.path())["items"]


def test_a_dependent_that_changes_meanwhile_is_removed_by_the_next_try(north):
    books.apply(pytorch_job("llama"))
    names = ("first", "second")
    for name in names:
        metadata = {"name": name, "labels": {dependents.MARK: "true"}}
        north.create(CONFIG_MAPS.path("default"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    references = [Reference("ConfigMap", name) for name in names]
    with pytest.raises(MemberChanged):
        dependents.remove(changing(north, CONFIG_MAPS.path("default", "first")), books.job("llama"), references)
    left = {each["metadata"]["name"] for each in north.list(CONFIG_MAPS.path("default"))["items"]}
    assert "first" in left and "second" not in left
    dependents.remove(north, books.job("llama"), references)
    assert not {each["metadata"]["name"] for each in north.list(CONFIG_MAPS.path("default"))["items"]} & {*names}
