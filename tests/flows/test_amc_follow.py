"""``kubectl amc get -w`` through the fleet: what happens between its list and its watch of a cluster is in its lines."""

from collections.abc import Callable

import pytest

from fleet.member.client import MemberClient
from frontend.cli.amc import kubeconfig
from frontend.cli.amc.fleet import Fleet
from frontend.cli.amc.follow import _Follower
from tests.support.kubectl import served

pytestmark = pytest.mark.django_db(transaction=True)
MAPS = "/api/v1/namespaces/default/configmaps"
HAPPENS: dict[str, tuple[bool, Callable[[MemberClient], object]]] = {
    "ADDED": (False, lambda member: create(member)),
    "MODIFIED": (True, lambda member: member.merge_patch(f"{MAPS}/settings", {"data": {"a": "b"}})),
    "DELETED": (True, lambda member: member.delete(f"{MAPS}/settings")),
}


def create(member: MemberClient) -> object:
    metadata = {"name": "settings", "labels": {"team": "vision"}}
    return member.create(MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


@pytest.mark.parametrize("selected", [{}, {"labelSelector": "team=vision"}, "settings"])
@pytest.mark.parametrize("event", HAPPENS)
def test_it_tells_what_happened_between_its_list_and_its_watch(world, admin, tmp_path, event, selected):
    world.still("north", 0)
    there, happens = HAPPENS[event]
    if there:
        create(world.clients["north"])
    names, asked = ([selected], {}) if isinstance(selected, str) else ([], selected)
    with served(tmp_path) as kubectl:
        fleet = Fleet(kubeconfig.find(str(kubectl.as_user("ada").file)), timeout_s=120)
        follower = _Follower(fleet.member("north"), "configmaps", names, "default", asked)
        found, _ = follower.list_changes()
        happens(world.clients["north"])
        kind, _, row = next(follower.changes(found))
    assert (kind, row["object"]["metadata"]["name"]) == (event, "settings")
    assert bool(follower.known) == (event != "DELETED")
