"""Tokens that do less than their user, where a service asks for the rights of a user by name."""

import asyncio
import json

import pytest
import yaml
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient

from fleet.core.security.token_scopes import Scope
from fleet.services.authorization import access
from fleet.services.members import proxying
from jobs.models import Dependent
from quotas.models import Queue
from quotas.services import trees
from tests.fleet.builders import by_token, status_of
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import team
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
WHOLE = {"cpu": 10**5, "memory": "900000Gi", books.GPU: 1000, "kube-queue/max-jobs": 1000}
HERE = Scope(namespaces=frozenset({"default"}))
FOR_JOBS = Scope(kinds=frozenset({"Job"}))
FOR_TOKENS = Scope(kinds=frozenset({"Token"}))


@pytest.fixture
def tree(db) -> None:
    ours, theirs = team("ours", namespaces=["default"]), team("theirs", namespaces=["speech"])
    trees.apply(manifest(quota("root", WHOLE, WHOLE, ours, theirs)), by="system", now=timezone.now())


def urgent(name: str, priority: int) -> dict:
    document = yaml.safe_load(pytorch_job(name))
    document["metadata"]["annotations"] = {"convoy.dev/priority": str(priority)}
    return document


def apply(client: APIClient, name: str, priority: int):
    return client.post("/api/v1/apply/", yaml.safe_dump(urgent(name, priority)), content_type="application/yaml")


@pytest.mark.parametrize("scope", [HERE, FOR_JOBS], ids=str)
def test_it_gives_no_job_a_priority_that_is_a_fleet_admins(admin, tree, scope):
    assert apply(by_token(admin, Scope()), "urgent", 2**31 - 1).status_code == 200
    client = by_token(admin, scope)
    assert apply(client, "llama", 10).status_code == 200
    answer = apply(client, "more", 2**31 - 1)
    assert answer.status_code == 403 and "editors may have at most" in answer.json()["detail"]


@pytest.mark.django_db(transaction=True)
def test_nor_at_the_kubernetes_door(admin):
    from deploy.config.kube import application

    door, jobs = application(), "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"
    whole, here = by_token(admin, Scope()).text, by_token(admin, HERE).text

    async def create_all() -> list[int]:
        return [
            await status_of(door, text, "POST", f"{jobs}{query}", json.dumps(urgent(name, priority)).encode())
            for text, name, priority, query in (
                (here, "a", 10, ""), (here, "b", 2**31 - 1, ""), (here, "b", 2**31 - 1, "?dryRun=All"),
                (whole, "b", 2**31 - 1, ""),
            )
        ]  # fmt: skip

    assert asyncio.run(create_all()) == [201, 403, 403, 201]
    connection.close()


@pytest.mark.parametrize("scope", [HERE, FOR_JOBS], ids=str)
def test_it_moves_no_job_into_the_queue_of_another_team(admin, tree, scope):
    client = by_token(admin, scope)
    apply(client, "llama", 10)
    path = f"/api/v1/queueunits/{books.job('llama').uid}/move/"
    assert client.post(path, {"queue": "root/theirs"}, format="json").status_code == 403
    assert books.job("llama").leaf == "root/ours"
    whole = by_token(admin, Scope(verbs=frozenset({"read", "move"})))
    assert whole.post(path, {"queue": "root/theirs"}, format="json").status_code == 200


def test_one_for_queues_alone_still_holds_them(admin, tree):
    client = by_token(admin, Scope(kinds=frozenset({"Queue"})))
    name = Queue.objects.get(path="root/theirs").name
    assert client.post(f"/api/v1/queues/{name}/hold/", {}, format="json").status_code == 200


def test_one_for_pods_passes_their_logs_at_the_kubernetes_door(admin, north):
    user = access.verify(by_token(admin, Scope(kinds=frozenset({"Pod"}))).text, now=timezone.now()).user
    proxying.require(user, proxying.log_of("vision", "llama-0"))


@pytest.mark.parametrize("scope", [HERE, FOR_TOKENS], ids=str)
def test_it_revokes_none_that_may_do_more(admin, scope):
    client, whole = by_token(admin, scope), by_token(admin, Scope())
    narrower, own = by_token(admin, scope), access.verify(client.text, now=timezone.now())
    ids = [access.verify(each.text, now=timezone.now()).pk for each in (whole, narrower)]
    refused = client.delete(f"/api/v1/tokens/{ids[0]}/")
    assert refused.status_code == 403 and "a token revokes none that may do more" in refused.json()["detail"]
    assert [client.delete(f"/api/v1/tokens/{each}/").status_code for each in (ids[1], own.pk)] == [204, 204]
    assert whole.delete(f"/api/v1/tokens/{ids[1]}/").status_code == 204


def test_a_priority_class_is_deleted_by_its_manifest(admin):
    document = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 5}
    text, client = yaml.safe_dump(document), by_token(admin, Scope())
    assert client.post("/api/v1/apply/", text, content_type="application/yaml").status_code == 200
    answer = client.post("/api/v1/delete/", text, content_type="application/yaml")
    assert answer.json()["results"][0]["action"] == "deleted" and not Dependent.objects.exists()
