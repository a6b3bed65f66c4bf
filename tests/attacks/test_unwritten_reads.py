"""What is in a Secret is shown to nobody without a line in the audit, by whatever request; and credentials that do not fit are
counted at every door."""

import json
from typing import Any

import pytest

from fleet import consumers
from fleet.models import AuditEntry
from tests.attacks.kube_door import Door
from tests.support.people import person

pytestmark = pytest.mark.django_db(transaction=True)
SECRETS = "/api/v1/namespaces/vision/secrets"
ONE = f"{SECRETS}/keys"
NAMED = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": "vision"}}
HUSH = "hush-hush"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"
COPY = [
    {"op": "add", "path": "/metadata/annotations", "value": {}},
    {"op": "copy", "from": "/stringData/k", "path": "/metadata/annotations/x"},
]
LOOKS: dict[str, tuple[str, str, Any, str, str]] = {
    "get": ("GET", ONE, None, "", ""),
    "list": ("GET", SECRETS, None, "", ""),
    "watch": ("GET", SECRETS, None, "", "watch=true&timeoutSeconds=1&resourceVersion=0"),
    "an empty patch": ("PATCH", ONE, {}, MERGE, ""),
    "an empty patch, tried": ("PATCH", ONE, {}, MERGE, "dryRun=All"),
    "an empty strategic patch": ("PATCH", ONE, {}, STRATEGIC, ""),
    "no operations": ("PATCH", ONE, [], JSON_PATCH, ""),
    "copied into an annotation": ("PATCH", ONE, COPY, JSON_PATCH, ""),
    "copied into an annotation, tried": ("PATCH", ONE, COPY, JSON_PATCH, "dryRun=All"),
    "applied, tried": ("PATCH", ONE, NAMED, APPLY, "fieldManager=x&dryRun=All"),
    "applied": ("PATCH", ONE, NAMED, APPLY, "fieldManager=x"),
    "a label, tried": ("PATCH", ONE, {"metadata": {"labels": {"a": "b"}}}, MERGE, "dryRun=All"),
    "a label": ("PATCH", ONE, {"metadata": {"labels": {"a": "b"}}}, MERGE, ""),
    "deleted, tried": ("DELETE", ONE, {}, "", "dryRun=All"),
    "deleted, tried by its body": ("DELETE", ONE, {"dryRun": ["All"]}, "", ""),
    "all deleted, tried": ("DELETE", SECRETS, {}, "", "dryRun=All"),
    "guessed": ("PATCH", ONE, [{"op": "test", "path": "/stringData/k", "value": "x"}], JSON_PATCH, "dryRun=All"),
    "deleted": ("DELETE", ONE, {}, "", ""),
}


@pytest.fixture
def door() -> Door:
    made = Door(person("eve", ("editor", "vision")))
    code, _ = made.ask("POST", SECRETS, json.dumps({**NAMED, "stringData": {"k": HUSH}}).encode())
    assert code == 201
    AuditEntry.objects.all().delete()
    return made


@pytest.mark.parametrize("look", LOOKS)
def test_no_look_at_a_secret_goes_unwritten(door: Door, look: str) -> None:
    method, path, body, kind, query = LOOKS[look]
    sent = b"" if body is None else json.dumps(body).encode()
    _, shown = door.exchange(method, path, sent, kind or "application/json", query)
    [line] = AuditEntry.objects.all()
    assert (line.actor, line.kind, line.namespace) == ("eve", "Secret", "vision") and line.address
    assert HUSH not in str(list(AuditEntry.objects.values())), "the audit does not show it either"
    assert look == "guessed" or HUSH in shown.decode() or look.startswith(("deleted", "all deleted"))


def test_what_is_tried_of_other_kinds_is_not_written_down() -> None:
    door = Door(person("eve", ("editor", "vision")))
    body = {**NAMED, "kind": "ConfigMap", "data": {"a": "b"}}
    for query in ("dryRun=All", ""):
        door.ask("POST", SECRETS.replace("secrets", "configmaps"), json.dumps(body).encode(), query=query)
    assert [line.verb for line in AuditEntry.objects.all()] == ["create"]


def test_tokens_that_are_none_are_counted_at_the_websocket(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[tuple[str, str]] = []
    monkeypatch.setattr(consumers.refused_sign_ins, "count", lambda address, what: counted.append((address, what.name)))
    headers = [(b"authorization", b"Bearer cvy_" + b"x" * 43)]
    assert consumers._user({"headers": headers, "client": ("10.0.0.9", 1)}) == (None, frozenset())
    assert consumers._user({"headers": [], "client": ("10.0.0.9", 1)}) == (None, frozenset())
    assert counted == [("10.0.0.9", "TOKENS_AT_SOCKETS")]
