"""Labels of a member's node are written in the member itself, by fleet admins, and not over others unless that is said."""

import pytest

from fleet.kube.resources import NODES
from tests.support.world import World

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/api/v1/clusters/north/nodes/gpu-0/"
SWITCH = "ack.node.gpu.schedule"


@pytest.fixture
def north(transactional_db, tmp_path):
    world = World(tmp_path)
    world.still("north", 8)
    client = world.clients["north"]
    client.create(
        NODES.path(), {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-0", "labels": {"a": "b"}}}
    )
    yield client
    world.stop()


def labels(client) -> dict:
    return client.get(NODES.path(name="gpu-0"))["metadata"]["labels"]


def patch(caller, url: str = URL, **body):
    return caller.patch(url, body, format="json")


def test_a_label_is_set_changed_only_by_overwriting_and_removed(as_admin, north):
    assert patch(as_admin, labels={SWITCH: "topology"}).json()["labels"] == {"a": "b", SWITCH: "topology"}
    refused = patch(as_admin, labels={SWITCH: "default"})
    assert refused.status_code == 409 and "'topology' already" in refused.json()["detail"]
    assert patch(as_admin, labels={SWITCH: "default"}, overwrite=True).status_code == 200
    assert labels(north) == {"a": "b", SWITCH: "default"}
    assert patch(as_admin, labels={SWITCH: None}).status_code == 200 and labels(north) == {"a": "b"}


@pytest.mark.parametrize(
    "wrong", [{"kubernetes.io/hostname": "x"}, {"convoy.dev/x": "y"}, {"no good": "x"}, {"a": "b c"}]
)
def test_labels_that_are_not_ones_own_or_none_are_refused_with_their_name(as_admin, north, wrong):
    answer = patch(as_admin, labels=wrong)
    assert answer.status_code == 422 and next(iter(wrong)) in answer.json()["detail"]
    assert labels(north) == {"a": "b"}


def test_it_takes_a_fleet_admin_and_a_node_that_is_there(as_admin, as_editor, north):
    assert patch(as_editor, labels={SWITCH: "topology"}).status_code == 403
    assert patch(as_admin, URL.replace("gpu-0", "gpu-1"), labels={"x": "y"}).status_code == 404
