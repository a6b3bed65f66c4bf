"""``kubectl delete --wait`` as the stock client does it, many times over, while others write: it always hears of the end."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from fleet.member.client import MemberClient
from tests.support.kubectl import client_of, served

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS, WRITERS, PATIENCE_S = 50, 4, 60
MAPS = "/api/v1/namespaces/default/configmaps"
SELECTORS = ({"fieldSelector": "metadata.name=settings"}, {"labelSelector": "team=vision"})


@pytest.fixture
def member(transactional_db, admin, tmp_path) -> Iterator[MemberClient]:
    with served(tmp_path) as kubectl:
        yield client_of(kubectl.as_user("ada").file)


def create(member: MemberClient, name: str, **labels: str) -> str:
    made = member.create(
        MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {}}
    )
    return str(made["metadata"]["uid"])


def write(member: MemberClient, number: int, done: threading.Event) -> int:
    rounds = 0
    while not done.is_set():
        create(member, f"other-{number}", team="speech")
        member.delete(f"{MAPS}/other-{number}")
        rounds += 1
    return rounds


def hears_of_the_end(member: MemberClient, uid: str, selector: dict[str, str], listed: threading.Event) -> bool:
    """A list, and if it is still there a watch from the list's version, until the deletion comes."""
    found = member.list(MAPS, selector)
    listed.set()
    if all(each["metadata"]["uid"] != uid for each in found["items"]):
        return True
    version = found["metadata"]["resourceVersion"]
    watched = member.watch(MAPS, resource_version=version, params=selector, timeout_s=PATIENCE_S)
    return any(each.type == "DELETED" and each.object["metadata"]["uid"] == uid for each in watched)


def test_it_always_hears_of_the_end(member: MemberClient) -> None:
    done = threading.Event()
    with ThreadPoolExecutor(WRITERS + 1) as pool:
        writers = [pool.submit(write, member, number, done) for number in range(WRITERS)]
        try:
            for turn in range(ROUNDS):
                uid, listed = create(member, "settings", team="vision"), threading.Event()
                waiting = pool.submit(hears_of_the_end, member, uid, SELECTORS[turn % 2], listed)
                assert listed.wait(PATIENCE_S)
                member.delete(f"{MAPS}/settings")
                assert waiting.result(PATIENCE_S * 2), turn
        finally:
            done.set()
        assert all(each.result(PATIENCE_S) > 0 for each in writers)
