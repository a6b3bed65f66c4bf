"""Steps in the admin that several tests share."""

import uuid
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from fleet.core.security.token_scopes import Scope
from fleet.models import Cluster, Event, Grant, Hold, Node, Pod
from fleet.services.authorization import access
from jobs.models import Attempt, Binding, Dependent, Job, Policy, Work

SECRET = "s3cr3t-of-the-member"


def fill(number: int) -> None:
    now = timezone.now()
    name = f"n{number}"
    user = User.objects.create(username=name)
    cluster = Cluster.objects.create(
        name=name, server="https://127.0.0.1", access={"token": SECRET}, state_since=now, joined_at=now
    )
    Node.objects.create(cluster=cluster, name=name)
    policy = Policy.objects.create(
        kind="PropagationPolicy", namespace="default", name=name, manifest={}, created_at=now
    )
    job = Job.objects.create(
        api_version="kubeflow.org/v1", kind="PyTorchJob", namespace="default", name=name, manifest={}, roles=[], total={},
        policy=policy, cluster=cluster, created_at=now, queued_at=now,
    )  # fmt: skip
    Pod.objects.create(
        cluster=cluster,
        namespace="default",
        name=name,
        uid=name,
        job_uid=job.uid,
        attempt=1,
        phase="Running",
        created_at=now,
    )
    Hold.objects.create(cluster=cluster, job_uid=job.uid, attempt=1, amounts={}, pods=3, made_at=now)
    Event.objects.create(
        regarding_kind="Cluster", regarding_name=name, regarding_uid=str(uuid.uuid4()), reason="Seen", message="m",
        source="test", first_at=now, last_at=now,
    )  # fmt: skip
    access.mint(user, name, life=None, now=now)
    Grant.objects.create(user=user, role="viewer")
    Binding.objects.create(job=job, cluster=cluster, scheduled_at=now)
    Attempt.objects.create(job=job, number=1, cluster_name=name, placed_at=now)
    Work.objects.create(
        job_uid=job.uid, attempt=1, cluster=cluster, api_version="kubeflow.org/v1", kind="PyTorchJob",
        namespace="default", name=name, due_at=now, created_at=now,
    )  # fmt: skip
    Dependent.objects.create(kind="Secret", namespace="default", name=name, manifest={"data": SECRET}, created_at=now)


class TokenClient(APIClient):
    """A REST client with a token, whose text is at hand for other doors."""

    text: str


def by_token(user: Any, scope: Scope, *, life: timedelta | None = None) -> TokenClient:
    """As `tests.support.people.client_of`, with a token that is limited."""
    _, text = access.mint(user, "limited", life=life, now=timezone.now(), scope=scope)
    client = TokenClient(enforce_csrf_checks=True)
    client.text = text
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    return client


async def status_of(application: Any, token: str, method: str, path: str, body: bytes = b"{}") -> int:
    """Of one request at the Kubernetes-style door, straight to the ASGI application."""
    bodies = iter([{"type": "http.request", "body": body, "more_body": False}])
    messages: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return next(bodies, {"type": "http.disconnect"})

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    content = b"application/json" if method == "POST" else b"application/merge-patch+json"
    headers = [(b"authorization", b"Bearer " + token.encode()), (b"content-type", content)]
    if path.endswith(("/exec", "/attach", "/portforward")):
        headers += [
            (b"connection", b"upgrade"),
            (b"upgrade", b"websocket"),
            (b"sec-websocket-protocol", b"v5.channel.k8s.io"),
        ]
    path, _, query = path.partition("?")
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode()}
    await application({**scope, "headers": headers, "client": ("127.0.0.1", 1)}, receive, send)
    return int(messages[0]["status"])
