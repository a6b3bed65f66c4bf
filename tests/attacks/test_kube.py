"""Hostile requests to the Kubernetes-style door: a Status of 4xx for each, an error of the server for none, nothing written."""

import asyncio
import base64
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml
from django.utils import timezone

from deploy.config.kube import application
from fleet.models import JournalEntry
from fleet.services import access
from jobs.models import Dependent, Job, Policy
from tests.attacks.bodies import JSON, VALUES, YAML, as_json
from tests.support.people import person
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
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
    def __init__(self) -> None:
        self._application = application()
        self._token = access.mint(person("ada", superuser=True), "attack", life=None, now=timezone.now())[1]

    def ask(
        self, method: str, path: str, body: bytes = b"", kind: str = "application/json", query: str = ""
    ) -> tuple[int, Any]:
        sent = [{"type": "http.request", "body": body}, {"type": "http.disconnect"}]
        headers = [(b"authorization", f"Bearer {self._token}".encode()), (b"content-type", kind.encode())]
        scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "headers": headers}
        heard: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return sent.pop(0) if sent else {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            heard.append(message)

        asyncio.run(
            self._application({**scope, "query_string": query.encode(), "client": ("127.0.0.1", 1)}, receive, send)
        )
        return heard[0]["status"], json.loads(b"".join(each.get("body", b"") for each in heard[1:]) or b"{}")


@pytest.fixture
def door(transactional_db: None) -> Iterator[Door]:
    door = Door()
    assert door.ask("POST", MAPS, as_json(MAP))[0] == 201
    before = _rows()
    yield door
    assert _rows() == before


def _rows() -> list[Any]:
    return [
        *(list(model.objects.order_by("pk").values()) for model in (Job, Policy, Dependent)),
        JournalEntry.objects.count(),
    ]


def refused(answer: tuple[int, Any], about: object) -> None:
    code, status = answer
    assert 400 <= code < 500, (about, answer)
    assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", code), (about, answer)


@pytest.mark.parametrize(("method", "path", "kind"), DOORS)
def test_it_refuses_every_body(door: Door, method: str, path: str, kind: str) -> None:
    for name, body in (YAML if kind in READS_YAML else JSON).items():
        refused(door.ask(method, path, body, kind, "fieldManager=x" if "patch" in kind else ""), name)


@pytest.mark.parametrize(("method", "path", "kind"), REVIEWS)
def test_it_answers_every_review(door: Door, method: str, path: str, kind: str) -> None:
    for name, body in (YAML if kind in READS_YAML else JSON).items():
        assert door.ask(method, path, body, kind)[0] in (201, 400), name
    for value in VALUES:
        for body in (
            {"spec": value},
            {"spec": {"resourceAttributes": value}},
            {"spec": {"resourceAttributes": {"verb": value}}},
        ):
            assert door.ask(method, path, as_json(body))[0] in (201, 400), body


@pytest.mark.parametrize("home", [MAPS, JOBS, UNITS, "/api/v1/events", "/api/v1/namespaces"])
def test_it_refuses_every_query(door: Door, home: str) -> None:
    for name, texts in QUERIES.items():
        for text in texts:
            about = (name, text[:60])
            code, _ = answer = door.ask("GET", home, query=urlencode({name: text}, errors="surrogatepass"))
            assert code < 500, about
            if name in ("labelSelector", "continue", "limit"):
                refused(answer, about)


@pytest.mark.parametrize("kind", PATCHES)
def test_it_refuses_every_patch(door: Door, kind: str) -> None:
    for patch in PATCHES[kind]:
        refused(door.ask("PATCH", f"{MAPS}/settings", as_json(patch), f"application/{kind}"), patch)


def _with(document: Any, path: str, value: object) -> bytes:
    copy = json.loads(json.dumps(document))
    inner = copy
    *parents, last = path.split(".")
    for part in parents:
        inner = inner[part]
    inner[last] = value
    return as_json(copy)


@pytest.mark.parametrize(
    "path",
    [
        "metadata",
        "metadata.name",
        "metadata.namespace",
        "metadata.labels",
        "metadata.resourceVersion",
        "metadata.uid",
        "metadata.generateName",
        "metadata.finalizers",
        "metadata.annotations",
        "metadata.ownerReferences",
        "metadata.managedFields",
        "kind",
        "apiVersion",
        "data",
    ],
)
def test_it_answers_values_of_the_wrong_type(transactional_db: None, path: str) -> None:
    door = Door()
    door.ask("POST", MAPS, as_json(MAP))
    for value in (*VALUES, [{}], [{"manager": []}], [{"fieldsV1": {"f:x": 1}}], {"a": "\U0001f600"}, "9" * 5000):
        body = _with(MAP, path, value)
        for method, home, kind in (
            ("PUT", f"{MAPS}/settings", "application/json"),
            ("POST", MAPS, "application/json"),
            ("PATCH", f"{MAPS}/settings", "application/merge-patch+json"),
            ("PATCH", f"{MAPS}/settings", "application/strategic-merge-patch+json"),
            ("PATCH", f"{MAPS}/settings", "application/apply-patch+yaml"),
        ):
            code, answer = door.ask(method, home, body, kind, "fieldManager=x&force=true" if "apply" in kind else "")
            assert code < 500 and (code < 400 or answer["kind"] == "Status"), (method, kind, value, answer)
