"""The lead of a node that the tree has no more: no right that a viewer lacks, at any API, and no error."""

import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from fleet.core.security.token_scopes import Scope
from fleet.models import Grant
from fleet.services.authorization import access
from quotas.models import Queue, QuotaGrant, QuotaTree
from quotas.services import trees
from tests.attacks.kube_door import Door
from tests.fleet.builders import by_token
from tests.quotas.api.builders import START, TREE, edit
from tests.quotas.core.builders import manifest, quota
from tests.support.people import person

pytestmark = pytest.mark.django_db(transaction=True)
KUBE = "/apis/scheduling.sigs.k8s.io/v1beta1/namespaces/kube-system/elasticquotatrees/tree"
NIGHT = {"name": "night", "max": {"cpu": 3}}


def with_gone(**fields: Any) -> dict[str, Any]:
    whole = quota("root", 10, 10, *START["spec"]["root"]["children"], quota("gone", 0, 5, **fields))
    return manifest(whole)


@pytest.fixture
def lea(db: None) -> Any:
    """She led root/gone, which a quota admin has taken out of the tree since."""
    user = person("lea", (Grant.Role.VIEWER, "default"))
    trees.apply(with_gone(), by="system", now=timezone.now())
    QuotaGrant.objects.create(user=user, path="root/gone")
    trees.apply(START, by="system", now=timezone.now())
    return user


def generation() -> int:
    return QuotaTree.objects.get().generation


def test_rest_refuses_every_way_to_change_or_bring_back_the_node(lea: Any) -> None:
    client, before = by_token(lea, Scope()), generation()
    queue = Queue.objects.exclude(path="root").order_by("path").first()
    assert queue is not None
    requests: list[tuple[str, str, Any]] = [
        ("patch", TREE, {"changes": [{"op": "add", "parent": "root/gone", "node": NIGHT}]}),
        ("patch", TREE, {"changes": [{"op": "add", "parent": "root", "node": {**NIGHT, "name": "gone"}}]}),
        ("patch", TREE, {"changes": [edit("root/gone", max={"cpu": 9})]}),
        ("patch", TREE, {"changes": [{"op": "remove", "path": "root/gone"}]}),
        ("patch", TREE, {"changes": [{"op": "move", "path": "root/a", "parent": "root/gone"}]}),
        ("put", TREE, {"manifest": with_gone()}),
        ("put", TREE, {"manifest": with_gone(namespaces=["stolen"])}),
        ("post", f"{TREE}revert/", {"to": 1}),
        ("delete", TREE, None),
        ("post", f"/api/v1/queues/{queue.name}/hold/", {}),
        ("post", "/api/v1/leads/", {"user": "lea", "path": "root"}),
    ]
    for method, path, body in requests:
        answer = getattr(client, method)(path, body, format="json")
        assert 400 <= answer.status_code < 500, (method, path, body, answer.status_code, answer.content)
    assert client.get(TREE).status_code == 200 and generation() == before
    assert access.visible_namespaces(lea) == {"default"}


def test_the_kubernetes_api_refuses_them_too(lea: Any) -> None:
    door, before = Door(lea), generation()
    body = json.dumps(with_gone()).encode()
    for method, kind in (
        ("PUT", "application/json"),
        ("PATCH", "application/merge-patch+json"),
        ("DELETE", "application/json"),
    ):
        code, status = door.ask(method, KUBE, body if method != "DELETE" else b"{}", kind)
        assert 400 <= code < 500 and status["kind"] == "Status", (method, code, status)
    assert door.ask("GET", KUBE)[0] == 200 and generation() == before


def test_the_admin_shows_what_a_viewer_sees(lea: Any) -> None:
    browser = Client(raise_request_exception=False)
    browser.force_login(lea, "fleet.api.sign_in.passwords.PasswordBackend")
    for page in ("quotatree/", "queue/", "quotagrant/", "quotagrant/add/"):
        assert browser.get(f"/admin/quotas/{page}").status_code < 500, page
    held = {"action": "hold", "_selected_action": [row.pk for row in Queue.objects.all()]}
    assert browser.post("/admin/quotas/queue/", held).status_code < 500
    assert not Queue.objects.exclude(state="Open").exists()
