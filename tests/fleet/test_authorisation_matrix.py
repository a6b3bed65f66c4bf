"""Every role × verb × kind × own or other namespace, through the Kubernetes-style door and REST, against rules written anew.

What is asked here is only whether the caller is let in: whether the object is there, or the body any good, is asked later.
"""

import asyncio
import json
from collections.abc import Iterator

import pytest
from django.db import transaction
from django.utils import timezone

from fleet.models import Grant
from fleet.services.authorization import access
from jobs.models import Dependent, Job, Policy
from jobs.services.submission import manifests, submit
from quotas.models import Queue, QuotaGrant
from tests.fleet.builders import status_of
from tests.support.people import client_of, person
from tests.support.world import POLICY, pytorch_job

OWN, OTHER = "vision", "speech"
ROLES = {
    "nobody": (),
    "viewer": (Grant.Role.VIEWER, OWN),
    "editor": (Grant.Role.EDITOR, OWN),
    "reader": (Grant.Role.VIEWER, ""),
    "writer": (Grant.Role.EDITOR, ""),
    "quotas": (Grant.Role.QUOTA_ADMIN, ""),
    "admin": (Grant.Role.FLEET_ADMIN, ""),
    "lead": (Grant.Role.VIEWER, OWN),
}
LED = {"ElasticQuotaTree", "Queue"}
"""A team lead changes something of these; which nodes, their service says."""
WIDE = {"Cluster", "Node", "NodeMetrics", "ClusterPropagationPolicy", "ClusterOverridePolicy", "ClusterTrainingRuntime"}
ENTITLEMENT = {"ElasticQuotaTree", "Queue", "PriorityClass"}
HUSHED = {"Secret", "ConfigMap", "ServiceAccount", "PersistentVolumeClaim"}


def allowed(who: str, reads: bool, kind: str, namespace: str) -> bool:
    """The rules, as PRODUCT and the issue say them; written without a look at `fleet.services.authorization.access`."""
    if not ROLES[who]:
        return False
    role, where = ROLES[who]
    if role == Grant.Role.FLEET_ADMIN:
        return True
    if kind in WIDE:
        return reads
    if kind in ENTITLEMENT:
        return reads or role == Grant.Role.QUOTA_ADMIN or (who == "lead" and kind in LED)
    if reads and kind not in HUSHED:
        return where in ("", namespace)
    return role == Grant.Role.EDITOR and where in ("", namespace)


def someone(who: str):
    user = person(who, *([ROLES[who]] if ROLES[who] else []))
    if who == "lead":
        QuotaGrant.objects.create(user=user, path="root")
    return user


def requests(kind) -> Iterator[tuple[str, bool, str, str]]:
    """(method, whether it reads, namespace, path) of every verb the kind has, in both namespaces."""
    resource = kind.served.resource
    for namespace in (OWN, OTHER) if resource.namespaced else ("",):
        root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
        root += f"/namespaces/{namespace}/{resource.plural}" if namespace else f"/{resource.plural}"
        one = {"get": "GET", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
        many = {"list": "GET", "create": "POST"}
        for verb in kind.verbs:
            if verb in one:
                yield one[verb], verb == "get", namespace, f"{root}/absent"
            elif verb in many:
                yield many[verb], verb == "list", namespace, root
        if "log" in kind.served.subresources:
            yield "GET", True, namespace, f"{root}/absent/log"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("who", ROLES)
def test_the_kubernetes_door_lets_in_whom_the_rules_do(who):
    from deploy.config.kube import application

    door = application()
    _, token = access.mint(someone(who), "test", life=None, now=timezone.now())
    # Namespaces are filtered by what one may see in them, not granted.
    kinds = [kind for kind in door.catalog if kind.name != "Namespace"]
    asked = [(kind.name, *each) for kind in kinds for each in requests(kind)]

    async def ask_all() -> list[int]:
        return [await status_of(door, token, method, path) for _, method, _, _, path in asked]

    told = zip(asked, asyncio.run(ask_all()), strict=True)
    wrong = [
        (method, path, status)
        for (kind, method, reads, namespace, path), status in told
        if (status != 403) != allowed(who, reads, kind, namespace)
    ]
    assert not wrong and len(asked) > 100


@pytest.fixture
def two_namespaces(north):
    """A job, a policy and a secret in each, and a queue."""
    secret = {"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "b"}}
    documents = []
    for namespace in (OWN, OTHER):
        for document in (*manifests.parse(POLICY.encode()), *manifests.parse(pytorch_job("llama").encode()), secret):
            metadata = {"name": "llama", **document.get("metadata", {}), "namespace": namespace}
            documents.append({**document, "metadata": metadata})
    submit.apply(documents, by="test", now=timezone.now())
    Queue.objects.create(name="root-abcde", path="root", created_at=timezone.now(), leaf=True)


def rest_requests() -> Iterator[tuple[str, bool, str, str, str]]:
    """(method, whether it reads, kind, namespace, path)."""
    for namespace in (OWN, OTHER):
        job = f"/api/v1/jobs/{Job.objects.get(namespace=namespace).uid}/"
        policy = f"/api/v1/policies/{Policy.objects.get(namespace=namespace).uid}/"
        secret = f"/api/v1/dependents/{Dependent.objects.get(namespace=namespace).uid}/"
        yield "get", True, "PyTorchJob", namespace, job
        yield "post", False, "PyTorchJob", namespace, job + "suspend/"
        yield "post", False, "PyTorchJob", namespace, job + "resize/"
        yield "delete", False, "PyTorchJob", namespace, job
        yield "get", True, "PropagationPolicy", namespace, policy
        yield "delete", False, "PropagationPolicy", namespace, policy
        yield "delete", False, "Secret", namespace, secret
    yield "get", True, "Cluster", "", "/api/v1/clusters/north/"
    yield "post", False, "Cluster", "", "/api/v1/clusters/north/cordon/"
    yield "post", False, "Cluster", "", "/api/v1/clusters/north/drain/"
    yield "get", True, "Queue", "", "/api/v1/queues/root-abcde/"
    yield "post", False, "Queue", "", "/api/v1/queues/root-abcde/hold/"


@pytest.mark.django_db
@pytest.mark.parametrize("who", ROLES)
def test_rest_lets_in_whom_the_rules_do(who, two_namespaces):
    client, wrong = client_of(someone(who)), []
    for method, reads, kind, namespace, path in rest_requests():
        with transaction.atomic():
            status = getattr(client, method)(path, {}, format="json").status_code
            transaction.set_rollback(True)
        if (status not in (403, 404)) != allowed(who, reads, kind, namespace):
            wrong.append((method, kind, namespace, status))
    assert not wrong


@pytest.mark.django_db
@pytest.mark.parametrize("who", ROLES)
@pytest.mark.parametrize("namespace", [OWN, OTHER])
def test_apply_lets_in_whom_the_rules_do(who, namespace):
    client = client_of(someone(who))
    for kind in ("PyTorchJob", "PropagationPolicy", "ClusterPropagationPolicy", "Secret", "ElasticQuotaTree"):
        document = {"apiVersion": "none/v1", "kind": kind, "metadata": {"name": "a", "namespace": namespace}}
        answer = client.post("/api/v1/apply/", json.dumps(document), content_type="application/json")
        assert (answer.status_code != 403) == allowed(who, False, kind, namespace), kind
