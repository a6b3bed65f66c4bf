"""The REST contract as it is served: the one that the repository keeps, and not made anew for each caller."""

import json
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator

from deploy.bootstrap.home import ROOT
from deploy.config import contract

pytestmark = pytest.mark.django_db
SCHEMA = "/api/v1/schema/"


def test_it_is_the_one_that_is_committed(as_viewer: Any) -> None:
    answer = as_viewer.get(SCHEMA, {"format": "json"})
    assert answer["Content-Type"] == "application/vnd.oai.openapi+json"
    assert answer["Content-Disposition"] == 'inline; filename="Convoy.json"'
    assert json.loads(answer.content) == json.loads((ROOT / "docs" / "openapi.json").read_text())


def test_it_refuses_anonymous_callers(as_nobody: Any) -> None:
    assert as_nobody.get(SCHEMA).status_code == 401


def test_many_requests_make_it_once_for_each_format(as_viewer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[None] = []
    make = SchemaGenerator.get_schema

    def counted(*args: Any, **named: Any) -> Any:
        made.append(None)
        return make(*args, **named)

    monkeypatch.setattr(SchemaGenerator, "get_schema", counted)
    contract._document.cache_clear()
    for query in ({}, {"format": "json"}, {"lang": "de"}, {"version": "x"}, {"format": "json"}, {}):
        assert as_viewer.get(SCHEMA, query).status_code == 200
    assert len(made) == 2
