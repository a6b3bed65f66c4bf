"""Tokens that do less than their user: what their scope takes away is refused at every door, and they mint nothing wider."""

import asyncio
from contextlib import nullcontext
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.test import APIClient

from fleet.core.security import token_scopes
from fleet.core.security.token_scopes import VERBS, Scope
from fleet.errors import Forbidden
from fleet.models import AuditEntry, Grant, Token
from fleet.services.authorization import access
from fleet.services.members import proxying
from tests.fleet.builders import by_token, status_of
from tests.support.people import person

pytestmark = pytest.mark.django_db
NAMES = st.none() | st.frozensets(st.sampled_from(["read", "apply", "delete"]), min_size=1)
SCOPES = st.builds(Scope, NAMES, NAMES, NAMES)


@given(SCOPES, SCOPES, *[st.sampled_from(["read", "apply", "delete"])] * 3)
def test_a_scope_within_another_allows_nothing_that_the_other_does_not(inner, outer, verb, kind, namespace):
    if inner.is_within(outer) and inner.allows(verb, [kind]) and inner.reaches(namespace):
        assert outer.allows(verb, [kind]) and outer.reaches(namespace)
    assert token_scopes.from_json(inner.as_json()) == inner


@pytest.mark.parametrize(
    "scope",
    [{"verb": ["read"]}, {"verbs": []}, {"verbs": "read"}, {"verbs": ["fly"]}, {"kinds": [1]}, {"namespaces": [""]},
     {"kinds": ["a" * 64]}, {"namespaces": [f"n{number}" for number in range(51)]}, {"verbs": None}],
    ids=str,
)  # fmt: skip
def test_a_limit_that_is_not_understood_is_refused_and_never_left_out(as_editor, scope):
    answer = as_editor.post("/api/v1/tokens/", {"name": "ci", "scope": scope}, format="json")
    assert answer.status_code == 422 and answer.json()["errors"][0]["field"].startswith("scope.")
    assert Token.objects.count() == 1


def test_a_read_only_token_reads_and_changes_nothing(admin, north):
    client = by_token(admin, Scope(verbs=frozenset({"read"})))
    assert client.get("/api/v1/clusters/north/").status_code == 200
    for path in ("clusters/north/cordon/", "tokens/", "users/", "grants/", "apply/", "jobs/bulk/", "queues/x/hold/"):
        assert client.post(f"/api/v1/{path}", {"name": "x"}, format="json").status_code == 403, path
    assert client.delete(f"/api/v1/tokens/{Token.objects.get().pk}/").status_code == 403
    refusal = client.post("/api/v1/clusters/north/cordon/").json()["detail"]
    assert refusal == "the token of ada is not for cordon Cluster: its scope is verbs read"


def test_a_token_for_a_namespace_reaches_no_other_and_changes_nothing_of_the_fleet(admin, north):
    client = by_token(admin, Scope(namespaces=frozenset({"vision"})))
    assert client.get("/api/v1/clusters/north/").status_code == 200
    for path in ("audit/", "grants/", "users/"):
        assert client.get(f"/api/v1/{path}").status_code == 403, path
    assert client.post("/api/v1/clusters/north/cordon/").status_code == 403
    user = access.verify(client.text, now=timezone.now()).user
    assert access.visible_namespaces(user) == {"vision"} and not access.is_fleet_admin(user)
    assert access.may(user, "apply", "PyTorchJob", "vision") and not access.may(user, "apply", "PyTorchJob", "speech")
    assert not access.may(user, "read", "PyTorchJob") and not access.may(user, "apply", "ElasticQuotaTree")


def test_a_token_for_metrics_reads_them_and_nothing_else(admin, monkeypatch):
    client = by_token(admin, Scope(verbs=frozenset({"read"}), kinds=frozenset({"Metrics"})))
    away = {"REMOTE_ADDR": "10.1.2.3"}
    assert client.get("/metrics", **away).status_code == 200
    for path in ("clusters/", "jobs/", "audit/", "events/", "system/", "tokens/", "whatif/", "queues/", "nodes/"):
        assert client.get(f"/api/v1/{path}").status_code in (403, 405), path
    viewer = by_token(person("vic", (Grant.Role.VIEWER, "")), Scope(kinds=frozenset({"Metrics"})))
    assert viewer.get("/metrics", **away).status_code == 403


def test_a_token_for_jobs_is_one_for_every_kind_of_job_at_every_door(admin):
    user = access.verify(by_token(admin, Scope(kinds=frozenset({"Job"}))).text, now=timezone.now()).user
    assert access.may(user, "apply", "PyTorchJob", "vision") and access.may(user, "delete", "Job", "vision")
    assert not access.may(user, "apply", "Secret", "vision") and not access.may(user, "read", "Cluster")
    narrow = access.verify(by_token(admin, Scope(kinds=frozenset({"TFJob"}))).text, now=timezone.now()).user
    assert access.may(narrow, "apply", "TFJob", "vision") and not access.may(narrow, "apply", "PyTorchJob", "vision")
    assert not access.may(narrow, "read", "Job", "vision")


@pytest.mark.parametrize(
    ("scope", "method", "path", "passes"),
    [
        (Scope(verbs=frozenset({"read"})), "GET", "/api/v1/nodes", True),
        (Scope(verbs=frozenset({"read"})), "DELETE", "/api/v1/nodes/n1", False),
        (Scope(verbs=frozenset({"read"})), "GET", "/api/v1/namespaces/vision/secrets", False),
        (Scope(namespaces=frozenset({"vision"})), "GET", "/api/v1/namespaces/vision/pods", True),
        (Scope(namespaces=frozenset({"vision"})), "GET", "/api/v1/namespaces/speech/pods", False),
        (Scope(namespaces=frozenset({"vision"})), "GET", "/api/v1/pods", False),
        (Scope(namespaces=frozenset({"vision"})), "GET", "/api/v1/secrets", False),
        (Scope(namespaces=frozenset({"vision"})), "GET", "/metrics", False),
        (Scope(kinds=frozenset({"pods"})), "GET", "/api/v1/namespaces/vision/pods", True),
        (Scope(kinds=frozenset({"pods"})), "GET", "/api/v1/namespaces/vision/services", False),
        (Scope(kinds=frozenset({"pods"})), "DELETE", "/api/v1/nodes/n1", False),
    ],
    ids=str,
)
def test_it_bounds_what_a_token_may_do_in_a_member(admin, scope, method, path, passes):
    user = access.verify(by_token(admin, scope).text, now=timezone.now()).user
    call = proxying.parse_call(method, path)
    with nullcontext() if passes else pytest.raises(Forbidden):
        proxying.require(user, call)


@pytest.mark.django_db(transaction=True)
def test_it_bounds_what_a_token_may_do_at_the_kubernetes_door(admin):
    from deploy.config.kube import application

    door, jobs = application(), "/apis/kubeflow.org/v1/namespaces/{}/pytorchjobs"
    reader = by_token(admin, Scope(verbs=frozenset({"read"}), namespaces=frozenset({"vision"}))).text

    async def ask_all() -> list[int]:
        return [
            await status_of(door, reader, method, path)
            for method, path in (
                ("GET", jobs.format("vision")),
                ("GET", jobs.format("speech")),
                ("POST", jobs.format("vision")),
                ("DELETE", jobs.format("vision")),
                ("GET", "/api/v1/namespaces/vision/secrets"),
            )
        ]

    assert asyncio.run(ask_all()) == [200, 403, 403, 403, 403]
    connection.close()


def minted(client: APIClient, path: str = "tokens/", **body: object):
    return client.post(f"/api/v1/{path}", {"name": "more", **body}, format="json")


def test_a_token_mints_none_that_is_wider_or_lasts_longer(admin):
    scope = Scope(namespaces=frozenset({"vision", "speech"}))
    client = by_token(admin, scope, life=timedelta(days=1))
    end = Token.objects.get().expires_at
    inherited = minted(client).json()
    assert (
        inherited["scope"]["namespaces"] == ["speech", "vision"]
        and inherited["expires_at"][:19] == end.isoformat()[:19]
    )
    narrow = minted(client, scope={"namespaces": ["vision"], "verbs": ["read"]}, expires_in_s=60)
    assert narrow.status_code == 201 and narrow.json()["scope"] == {"verbs": ["read"], "namespaces": ["vision"]}
    for wider in ({"namespaces": ["vision", "default"]}, {"verbs": list(VERBS)}, {}):
        answer = minted(client, scope=wider)
        assert answer.status_code == 403 and "may do more than it" in answer.json()["detail"], wider
    answer = minted(client, expires_in_s=2 * 86400)
    assert answer.status_code == 403 and "none that lasts longer" in answer.json()["detail"]


def test_a_token_mints_none_that_lasts_longer_for_another_user_either(admin):
    person("bob")
    client = by_token(admin, Scope(), life=timedelta(hours=1))
    answer = minted(client, "users/bob/tokens/", expires_in_s=7200)
    assert answer.status_code == 403 and not Token.objects.filter(user__username="bob").exists()
    assert minted(client, "users/bob/tokens/").status_code == 201
    assert Token.objects.get(user__username="bob").expires_at == Token.objects.get(user=admin).expires_at


def test_every_token_ends_also_one_of_before_and_one_whose_longest_life_was_lowered(admin, settings):
    assert Token.objects.count() == 0
    text = by_token(admin, Scope()).text
    row = Token.objects.get()
    assert row.expires_at - row.created_at == timedelta(days=365)
    Token.objects.update(expires_at=None)
    access.verify(text, now=row.created_at + timedelta(days=364))
    settings.CONVOY_ACCESS = type(settings.CONVOY_ACCESS)(token_max_s=86400.0)
    with pytest.raises(Forbidden, match="expired"):
        access.verify(text, now=row.created_at + timedelta(days=2))
    assert access.verify(text, now=timezone.now()).user == admin


def test_the_audit_names_the_scope_of_a_token(as_editor):
    assert minted(as_editor, scope={"verbs": ["read"]}).status_code == 201
    assert AuditEntry.objects.get(kind="Token").name == "vera: more (verbs read)"
