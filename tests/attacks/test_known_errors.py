"""Every request that answered 500, or ended the process, when version dcd2603 was reviewed: one row each, all refused now.

The other modules here send whole classes of requests to every API; this one keeps the reported ones, so that none is lost.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fleet.core import tags
from tests.attacks.bodies import JSON, YAML, as_json
from tests.attacks.kube_door import ACCESS, MAP, MAPS, QUERIES, UNITS, Door
from tests.support.people import client_of, person

TAGS = ("a truth that is none", "a time that is none", "no number", "no decimal", "sixtieths")
OF_YAML = (
    "post apply/", "post apply/preview/", "post quota/dry-run/", "put quota/tree/", "post quota/tree/preview/",
    "post whatif/ add_job", "post clusters/check/ kubeconfig",
)  # fmt: skip
OF_JSON = (
    "post tokens/", "post whatif/", "post jobs/bulk/", "post grants/", "post clusters/", "post clusters/check/",
    "post users/ada/tokens/", "post quota/tree/preview/", "post quota/tree/revert/", "patch clusters/north/",
    "patch quota/tree/", "put quota/tree/", "post apply/",
)  # fmt: skip
SETTINGS, VERSION = f"{MAPS}/settings", "/metadata/resourceVersion"
MERGE, STRATEGIC, PATCH, APPLY = (
    f"application/{kind}"
    for kind in ("merge-patch+json", "strategic-merge-patch+json", "json-patch+json", "apply-patch+yaml")
)
Row = tuple[str, str, bytes, str, str]
"""Method, path, body, content type, query."""


def of_kube() -> Iterator[Row]:
    json_type = "application/json"
    for name in TAGS:
        yield "POST", ACCESS, YAML[name], "application/yaml", ""
        yield "POST", MAPS, YAML[name], "application/yaml", ""
        yield "PATCH", SETTINGS, YAML[name], APPLY, "fieldManager=x"
    for field in ("name", "generateName"):
        yield "POST", MAPS, as_json({**MAP, "metadata": {field: "\ud800"}}), json_type, ""
    yield "PATCH", f"{UNITS}/x", as_json({"spec": {"queue": "\ud800"}}), MERGE, ""
    for text in ("²", "9" * 5000):
        versioned = {**MAP, "metadata": {"name": "settings", "resourceVersion": text}}
        yield "PUT", SETTINGS, as_json(versioned), json_type, ""
        yield "PATCH", SETTINGS, as_json([{"op": "add", "path": VERSION, "value": text}]), PATCH, ""
    for number in (3, 4, 5):
        yield "GET", MAPS, b"", json_type, f"continue={QUERIES['continue'][number]}"
    scalar = {"metadata": {"finalizers": 5, "$deleteFromPrimitiveList/finalizers": ["a"]}}
    yield "PATCH", SETTINGS, as_json(scalar), STRATEGIC, ""


@pytest.mark.django_db
@pytest.mark.parametrize("api", OF_YAML)
def test_rest_refuses_each_document_of_yaml(north: Any, as_admin: Any, api: str) -> None:
    method, path, *field = api.split()
    client = client_of(person("vic", ("viewer", ""))) if path == "whatif/" else as_admin
    for name in (*TAGS, "brackets", "braces"):
        text = YAML[name].decode()
        body, kind = (json.dumps({field[0]: text}), "application/json") if field else (text, "application/yaml")
        answer = client.generic(method.upper(), f"/api/v1/{path}", body, content_type=kind)
        faults = answer.json().get("faults") or answer.json().get("ok") is False
        assert 400 <= answer.status_code < 500 or faults, (name, answer.status_code, answer.content[:200])


@pytest.mark.django_db
@pytest.mark.parametrize("api", OF_JSON)
def test_rest_refuses_each_deep_document_of_json(north: Any, as_admin: Any, api: str) -> None:
    method, path = api.split()
    for name in ("brackets", "objects"):
        answer = as_admin.generic(method.upper(), f"/api/v1/{path}", JSON[name], content_type="application/json")
        assert 400 <= answer.status_code < 500, (name, answer.status_code, answer.content[:200])


@pytest.mark.django_db(transaction=True)
def test_the_kubernetes_api_refuses_each() -> None:
    door = Door(), Door(person("nora"))
    assert door[0].ask("POST", MAPS, as_json(MAP))[0] == 201
    for method, path, body, kind, query in of_kube():
        code, status = door[path == ACCESS].ask(method, path, body, kind, query)
        refused = 400 <= code < 500 and status["kind"] == "Status"
        assert refused or (code == 201 and path == ACCESS), (method, path, body[:40], code, status)
    assert door[0].ask("GET", SETTINGS)[1]["data"] == MAP["data"]


def test_the_review_reported_eighty() -> None:
    assert len(OF_YAML) * (len(TAGS) + 2) + len(OF_JSON) * 2 + len(list(of_kube())) >= 80


def test_a_taint_of_a_cluster_whose_key_or_effect_is_no_text_is_refused_by_its_field() -> None:
    faults = dict(
        tags.taint_faults(
            [{"key": {}, "effect": "NoSchedule"}, {"key": "a", "effect": []}, {"key": {}, "effect": "NoSchedule"}]
        )
    )
    assert {"taints[0].key", "taints[1].effect", "taints[2]"} <= faults.keys()
