"""Hostile requests to the Kubernetes-style door: a Status of 4xx for each, an error of the server for none, nothing written."""

import gc
import json
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

import pytest

from fleet.models import JournalEntry
from jobs.models import Dependent, Job, Policy
from tests.attacks.bodies import JSON, VALUES, YAML, as_json
from tests.attacks.kube_door import DOORS, JOBS, MAP, MAPS, PATCHES, QUERIES, READS_YAML, REVIEWS, UNITS, Door

pytestmark = pytest.mark.django_db(transaction=True)


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


@pytest.mark.parametrize(("method", "path"), [("X", MAPS), ("POST", f"{MAPS}/settings"), ("PUT", "/api/v1/namespaces")])
def test_refused_methods_leave_nothing_in_memory(transactional_db: None, method: str, path: str) -> None:
    door = Door()

    def tracebacks() -> int:
        for _ in range(200):
            assert door.ask(method, path)[0] == 405
        gc.collect()
        return sum(type(each) is TracebackType for each in gc.get_objects())

    before = tracebacks()
    # Threads of earlier tests may have some of their own meanwhile.
    assert tracebacks() <= before + 100


def test_no_module_keeps_an_error_that_is_raised_again() -> None:
    """It would keep the frames of every request that it refused."""
    product = {
        name: module
        for name, module in sys.modules.items()
        if name.split(".")[0] in ("fleet", "quotas", "jobs", "deploy")
    }
    kept = [f"{name}.{key}" for name, module in product.items() for key, value in vars(module).items()
            if isinstance(value, BaseException)]  # fmt: skip
    assert len(product) > 200 and not kept
