"""The Kubernetes-style door as an attacker meets it: its paths, bodies, queries, and a way to ask."""

import asyncio
import base64
import json
from typing import Any

import yaml
from django.utils import timezone

from deploy.config.kube import application
from fleet.services.authorization import access
from tests.support.people import person
from tests.support.world import pytorch_job

JOBS, MAPS = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs", "/api/v1/namespaces/default/configmaps"
UNITS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/queueunits"
ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
JOB = yaml.safe_load(pytorch_job("llama"))
MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "finalizers": ["a/b"]},
    "data": {"k": "v"},
}
PROXY = "/apis/cluster.karmada.io/v1alpha1/clusters/north/proxy"
READS_YAML = ("application/yaml", "application/apply-patch+yaml")
DOORS = [
    ("POST", MAPS, "application/json"),
    ("POST", MAPS, "application/yaml"),
    ("POST", JOBS, "application/json"),
    ("PUT", f"{MAPS}/settings", "application/json"),
    ("DELETE", f"{MAPS}/settings", "application/json"),
    ("PATCH", f"{MAPS}/settings", "application/merge-patch+json"),
    ("PATCH", f"{MAPS}/settings", "application/strategic-merge-patch+json"),
    ("PATCH", f"{MAPS}/settings", "application/json-patch+json"),
    ("PATCH", f"{MAPS}/settings", "application/apply-patch+yaml"),
    ("PATCH", f"{UNITS}/x", "application/merge-patch+json"),
    ("DELETE", MAPS, "application/json"),
]
REVIEWS = [
    ("POST", ACCESS, "application/json"),
    ("POST", ACCESS, "application/yaml"),
    ("POST", ACCESS.replace("access", "rules"), "application/json"),
]


def token(*parts: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).replace("Infinity", "1e999").encode()).decode()


INFINITE = float("inf")
QUERIES = {
    "labelSelector": [
        "a" + " " * 8000 + "(",
        " " * 8000 + "(",
        "a in (" + "b," * 5000,
        "!" * 5000,
        "a,," * 5,
        "a=b" * 2000,
        ",".join(f"a{i}" for i in range(201)),
        "a in b",
        "(",
        "=",
        "!",
        "a notin (x))",
    ],
    "fieldSelector": ["spec.x=1", "=" * 4000, "metadata.name", "metadata.name=\x00", "metadata.name==" + "a=" * 5],
    "continue": [
        "AAAA",
        "*",
        "²",
        token(INFINITE, "a", "b", None),
        token(1, "a", "b", INFINITE),
        token(1, "\ud800", "b", None),
        token(1),
        token({}),
        token("1", "a", "b", None),
        token(10**30, "a", "b", None),
        token(-1, "a", "b", None),
        token([1], ["a"], "b", None),
        base64.b64encode(b"[" * 90_000).decode(),
        token(1, "a", "b\x00", None),
    ],
    "resourceVersion": ["²", "-1", "1" * 5000, "1e3", "x"],
    "limit": ["²", "-1", "9" * 30, "x", "1.5"],
    "timeoutSeconds": ["²", "9" * 30],
    "resourceVersionMatch": ["x", "Exact"],
    "fieldManager": ["x" * 200, "\n"],
    "dryRun": ["x"],
    "fieldValidation": ["x"],
}
PATCHES: dict[str, list[Any]] = {
    "strategic-merge-patch+json": [
        {"metadata": {"finalizers": 5, "$deleteFromPrimitiveList/finalizers": ["a"]}},
        {"metadata": {"$deleteFromPrimitiveList/name": ["a"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}},
        {"metadata": {"finalizers": [[]]}},
        {"metadata": {"ownerReferences": [{"uid": []}]}},
        {"metadata": {"ownerReferences": [{}]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": [{}]}},
        5,
        [1],
    ],
    "json-patch+json": [
        [
            {"op": "add", "path": "/data/k", "value": "v"},
            *({"op": "copy", "from": "/data", "path": f"/data/{i}"} for i in range(40)),
        ],
        [{"op": "test", "path": "/kind", "value": "ConfigMap"}] * 10_001,
        [{"op": "remove", "path": ""}],
        [{}],
        [5],
        {},
        5,
        [{"op": "add", "path": "/metadata/finalizers/" + "1" * 5000, "value": "x"}],
        [{"op": "add", "path": "/metadata/finalizers/²", "value": "x"}],
        [{"op": "add", "path": 5, "value": 1}],
        [{"op": "copy", "from": "", "path": "/metadata"}] * 20,
        [{"op": "move", "from": "/metadata", "path": "/metadata/name"}],
        [{"op": "replace", "path": "/metadata/resourceVersion", "value": "²"}],
        [{"op": "replace", "path": "/metadata/resourceVersion", "value": "9" * 5000}],
    ],
    "merge-patch+json": [
        {"metadata": None},
        {"metadata": {"name": None}},
        5,
        [1],
        {"metadata": {"resourceVersion": "²"}},
    ],
}


class Door:
    """Requests of one user; of an admin unless another is given."""

    def __init__(self, user: Any = None, served: Any = None) -> None:
        self._application = served or application()
        self.catalog = self._application.catalog
        user = user or person("ada", superuser=True)
        self._token = access.mint(user, "attack", life=None, now=timezone.now())[1]

    def ask(
        self, method: str, path: str, body: bytes = b"", kind: str = "application/json", query: str = ""
    ) -> tuple[int, Any]:
        code, answer = self.exchange(method, path, body, kind, query)
        return code, json.loads(answer or b"{}")

    def exchange(
        self, method: str, path: str, body: bytes = b"", kind: str = "application/json", query: str = ""
    ) -> tuple[int, bytes]:
        """The status and the body of the answer, which the proxy passes on as the member sends it."""
        sent = [{"type": "http.request", "body": body}]
        headers = [(b"authorization", f"Bearer {self._token}".encode()), (b"content-type", kind.encode())]
        scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "headers": headers}
        heard: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return sent.pop(0) if sent else await asyncio.Event().wait() or {}

        async def send(message: dict[str, Any]) -> None:
            heard.append(message)

        asyncio.run(
            self._application({**scope, "query_string": query.encode(), "client": ("127.0.0.1", 1)}, receive, send)
        )
        return heard[0]["status"], b"".join(each.get("body", b"") for each in heard[1:])


async def ask_as(door: Any, token: str, path: str, accept: bytes) -> bytes:
    """The whole answer; of a watch what is sent within a moment."""
    path, _, query = path.partition("?")
    parts: list[bytes] = []
    bodies = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        if (message := next(bodies, None)) is not None:
            return message
        return await asyncio.Event().wait() or {}

    async def send(message: dict[str, Any]) -> None:
        parts.append(message.get("body", b""))

    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": query.encode()}
    headers = [(b"authorization", b"Bearer " + token.encode()), (b"accept", accept)]
    await door({**scope, "headers": headers, "client": ("127.0.0.1", 1)}, receive, send)
    return b"".join(parts)
