"""Fields nobody knows, fields written twice, and what is said beside an object. The real server here is too old to warn."""

import json
from typing import Any

import pytest
import urllib3

from fleet.kube.resources import CONFIG_MAPS, PODS
from tests.contract.target import Target, config_map, gone, pod

STRATEGIC, MERGE = "application/strategic-merge-patch+json", "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


def told(target: Target, method: str, path: str, body: bytes, kind: str = "application/json") -> list[str]:
    """The warnings beside an answer that is no refusal."""
    headers = {"Authorization": f"Bearer {target.access.token}", "Content-Type": kind}
    with urllib3.PoolManager(ca_cert_data=target.access.ca_pem) as pool:
        answer = pool.request(
            method, target.access.server + path, body=body, headers=headers, retries=False, timeout=60
        )
    assert answer.status < 300, answer.data
    return answer.headers.getlist("warning")


def misspelt(**metadata: Any) -> bytes:
    return json.dumps({**config_map("a", {"k": "1"}, **metadata), "dta": {"x": "y"}}).encode()


@pytest.mark.usefixtures("newer")
def test_it_warns_of_a_field_nobody_knows(target: Target, namespace: str) -> None:
    assert told(target, "POST", CONFIG_MAPS.path(namespace), misspelt()) == ['299 - "unknown field \\"dta\\""']


def test_it_drops_a_field_nobody_knows(target: Target, namespace: str) -> None:
    target.members_only("a manifest is kept as it was written, for members that may know more")
    told(target, "POST", CONFIG_MAPS.path(namespace), misspelt())
    assert "dta" not in target.member.get(CONFIG_MAPS.path(namespace, "a"))


@pytest.mark.usefixtures("newer")
def test_it_warns_of_a_field_written_twice(target: Target, namespace: str) -> None:
    body = b'{"metadata": {"name": "a"}, "data": {"k": "1", "k": "2"}}'
    assert told(target, "POST", CONFIG_MAPS.path(namespace), body) == ['299 - "duplicate field \\"data.k\\""']
    assert target.member.get(CONFIG_MAPS.path(namespace, "a"))["data"] == {"k": "2"}


def test_it_says_nothing_when_told_to_ignore(target: Target, namespace: str) -> None:
    assert told(target, "POST", f"{CONFIG_MAPS.path(namespace)}?fieldValidation=Ignore", misspelt()) == []


@pytest.mark.usefixtures("newer")
def test_it_refuses_when_told_to_be_strict(target: Target, namespace: str) -> None:
    code, answer = target.raw("POST", f"{CONFIG_MAPS.path(namespace)}?fieldValidation=Strict", misspelt())
    why = 'strict decoding error: unknown field "dta"'
    message = f'ConfigMap in version "v1" cannot be handled as a ConfigMap: {why}'
    assert (code, answer["reason"], answer["message"]) == (400, "BadRequest", message)
    assert gone(target, CONFIG_MAPS.path(namespace, "a"))


@pytest.mark.usefixtures("newer", "pods")
@pytest.mark.parametrize("kind", [MERGE, STRATEGIC, APPLY])
def test_it_finds_the_unknown_in_a_patch(target: Target, namespace: str, kind: str) -> None:
    target.member.create(PODS.path(namespace), pod("a"))
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "lables": {"l": "1"}}}
    query = "fieldManager=me&fieldValidation=Strict"
    path = f"{PODS.path(namespace, 'a')}?{query}"
    code, answer = target.raw("PATCH", path, json.dumps(body).encode(), Content_Type=kind)
    assert code == 400 and answer["message"].endswith('strict decoding error: unknown field "metadata.lables"')


@pytest.mark.usefixtures("newer")
def test_it_refuses_a_strictness_there_is_not(target: Target, namespace: str) -> None:
    code, answer = target.raw("POST", f"{CONFIG_MAPS.path(namespace)}?fieldValidation=Perhaps", misspelt())
    supported = 'Unsupported value: "Perhaps": supported values: "", "Ignore", "Strict", "Warn"'
    cause = {"reason": "FieldValueNotSupported", "message": supported, "field": "fieldValidation"}
    assert (code, answer["details"]["causes"]) == (422, [cause])


@pytest.mark.parametrize(
    ("query", "kind", "reason", "field"),
    [
        ("", APPLY, "Required", "fieldManager"),
        ("fieldManager=me&force=true", MERGE, "Forbidden", "force"),
        (f"fieldManager={'m' * 129}", MERGE, "TooLong", "fieldManager"),
        ("dryRun=Some", MERGE, "NotSupported", "dryRun"),
    ],
    ids=["manager", "force", "long", "dry"],
)
def test_it_refuses_options_that_cannot_be(
    target: Target, namespace: str, query: str, kind: str, reason: str, field: str
) -> None:
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    body = json.dumps(config_map("a")).encode()
    code, answer = target.raw("PATCH", f"{CONFIG_MAPS.path(namespace, 'a')}?{query}", body, Content_Type=kind)
    causes = [(each["reason"], each["field"]) for each in answer["details"]["causes"]]
    assert (code, answer["details"]["kind"], causes) == (422, "PatchOptions", [(f"FieldValue{reason}", field)])


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"apiVersion": "v2"}, 400, "Specified patch version: v2, expected: v1"),
        ({"metadata": {"name": "b"}}, 400, "the name of the object (b) does not match the name on the URL (a)"),
        ({"metadata": {"name": "a", "managedFields": [{}]}}, 400, "metadata.managedFields must be nil"),
        ({"metadata": {"name": "a", "resourceVersion": "1"}}, 409, "the object has been modified"),
    ],
    ids=["version", "name", "managed", "stale"],
)
def test_it_refuses_to_apply_what_is_not_this_object(
    target: Target, namespace: str, change: dict, code: int, message: str
) -> None:
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    path, body = f"{CONFIG_MAPS.path(namespace, 'a')}?fieldManager=me", {**config_map("a"), **change}
    found, answer = target.raw("PATCH", path, json.dumps(body).encode(), Content_Type=APPLY)
    assert found == code and message in answer["message"]


def test_it_applies_what_has_no_name_only_to_what_is_there(target: Target, namespace: str) -> None:
    path, body = f"{CONFIG_MAPS.path(namespace, 'a')}?fieldManager=me", {**config_map("a", {"k": "1"}), "metadata": {}}
    code, answer = target.raw("PATCH", path, json.dumps(body).encode(), Content_Type=APPLY)
    assert code == 400 and "was undeterminable: name must be provided" in answer["message"]
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    code, answer = target.raw("PATCH", path, json.dumps(body).encode(), Content_Type=APPLY)
    assert (code, answer["metadata"]["name"], answer["data"]) == (200, "a", {"k": "1"})
