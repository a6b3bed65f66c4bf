"""Sign-in with an account of the company, against a real provider: as which user, with which roles, and what is refused."""

from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth import get_user_model
from rest_framework.test import APIClient

from fleet.api.sign_in import oidc
from fleet.core.security.oidc import OidcSettings, read_groups
from fleet.models import AuditEntry, Grant, OidcIdentity, SpentState
from fleet.oidc import Provider
from tests.support import oidc_provider
from tests.support.oidc_provider import CLIENT, FAULTS, SECRET
from tests.support.people import person

pytestmark = pytest.mark.django_db
GROUPS = '{"ml": ["editor:vision", "viewer"], "ops": ["fleet-admin"], "leads": ["lead:root/vision"]}'
ALICE = {"sub": "a-1", "preferred_username": "alice", "groups": ["ml", "staff"]}


@pytest.fixture(scope="module")
def provider(tmp_path_factory):
    with oidc_provider.started(tmp_path_factory.mktemp("provider")) as running:
        yield running


@pytest.fixture(autouse=True)
def company(provider, settings):
    oidc.returns.cache_clear()
    settings.CONVOY_OIDC = OidcSettings(provider.issuer, CLIENT, SECRET, groups=read_groups(GROUPS))


def begin(browser, path="/oidc/signin/"):
    answer = browser.get(path)
    assert answer.status_code == 302, answer.content
    return answer["Location"]


def sign_in(provider, browser=None, /, **claims):
    browser = browser or APIClient()
    return browser, browser.get("/oidc/callback/", provider.authorize(begin(browser), **{**ALICE, **claims}))


def roles(username):
    return set(Grant.objects.filter(user__username=username).values_list("role", "namespace"))


def user(username):
    return get_user_model().objects.get(username=username)


def audited(**about):
    return list(AuditEntry.objects.filter(**about).order_by("pk"))


def test_it_signs_in_a_user_with_the_roles_of_their_groups(provider):
    browser, answer = sign_in(provider)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    me = browser.get("/api/v1/me/").json()
    assert me["username"] == "alice"
    assert me["roles"] == [{"role": "editor", "namespace": "vision"}, {"role": "viewer", "namespace": ""}]
    assert not user("alice").has_usable_password() and not user("alice").is_staff
    [line] = audited(verb="sign-in")
    assert (line.actor, line.outcome, provider.issuer in line.message) == ("alice", "done", True)
    assert {entry.name for entry in audited(verb="grant", actor="alice")} == {
        "alice: editor in vision", "alice: viewer in all namespaces"
    }  # fmt: skip


def test_it_sends_the_browser_to_the_provider_with_pkce_state_and_nonce():
    query = parse_qs(urlsplit(begin(APIClient())).query)
    assert query["code_challenge_method"] == ["S256"] and query["response_type"] == ["code"]
    assert all(len(query[name][0]) >= 43 for name in ("state", "nonce", "code_challenge"))


def test_it_signs_in_a_client_without_a_secret(provider, settings):
    settings.CONVOY_OIDC = OidcSettings(provider.issuer, "public", groups=read_groups(GROUPS))
    assert sign_in(provider)[1].status_code == 302


def test_it_reads_groups_that_the_provider_keeps_out_of_the_id_token(provider):
    assert sign_in(provider, elsewhere=["groups", "preferred_username"])[1].status_code == 302
    assert roles("alice") == {("editor", "vision"), ("viewer", "")}


@pytest.mark.parametrize("fault", FAULTS)
def test_it_refuses_an_id_token_that_is_not_of_this_provider_for_this_attempt(provider, fault):
    browser, answer = sign_in(provider, fault=fault)
    assert answer.status_code == 403 and "ID token" in answer.content.decode() and "sessionid" not in browser.cookies
    assert not get_user_model().objects.exists()


def test_it_refuses_a_state_that_comes_back_twice(provider):
    browser = APIClient()
    query = provider.authorize(begin(browser), **ALICE)
    kept = browser.cookies["convoy_oidc"].value
    assert browser.get("/oidc/callback/", query).status_code == 302
    again = APIClient()
    again.cookies["convoy_oidc"] = kept
    answer = again.get("/oidc/callback/", query)
    assert answer.status_code == 403 and "came back before" in answer.content.decode()


def test_it_refuses_the_answer_to_the_attempt_of_another_browser(provider):
    query = provider.authorize(begin(APIClient()), **ALICE)
    for other in (APIClient(), APIClient()):
        assert other.get("/oidc/callback/", query).status_code == 403
        begin(other)
        assert other.get("/oidc/callback/", query).status_code == 403
    assert not SpentState.objects.exists()


@pytest.mark.parametrize(
    "change", [{"state": ""}, {"code": ""}, {"code": "made-up"}, {"iss": "https://another.example"}, {"error": "<b>no"}]
)
def test_it_refuses_an_answer_that_was_changed(provider, change):
    browser = APIClient()
    query = provider.authorize(begin(browser), **ALICE)
    answer = browser.get("/oidc/callback/", query | change)
    assert answer.status_code == 403 and "<b>" not in answer.content.decode()


def test_it_never_takes_over_a_local_user_of_the_same_name(provider):
    person("alice", ("fleet-admin", ""))
    browser, answer = sign_in(provider)
    assert answer.status_code == 403 and "another user alice" in answer.content.decode()
    assert roles("alice") == {("fleet-admin", "")} and not OidcIdentity.objects.exists()
    [line] = audited(verb="sign-in")
    assert (line.actor, line.name, line.outcome) == ("", "alice", "refused")


def test_it_knows_accounts_by_subject_and_not_by_name(provider):
    sign_in(provider)
    _, answer = sign_in(provider, sub="a-2")
    assert answer.status_code == 403 and get_user_model().objects.count() == 1
    browser, _ = sign_in(provider, preferred_username="alice-married")
    assert browser.get("/api/v1/me/").json()["username"] == "alice"


def test_it_keeps_names_of_the_company_apart_by_a_prefix(provider, settings):
    settings.CONVOY_OIDC = OidcSettings(provider.issuer, CLIENT, SECRET, username_prefix="acme-")
    person("alice")
    browser, _ = sign_in(provider)
    assert browser.get("/api/v1/me/").json()["username"] == "acme-alice"


def test_it_keeps_disabled_users_out(provider):
    sign_in(provider)
    get_user_model().objects.update(is_active=False)
    browser, answer = sign_in(provider)
    assert answer.status_code == 403 and "disabled" in answer.content.decode()
    assert browser.get("/api/v1/me/").status_code == 401


@pytest.mark.parametrize("groups", [{"groups": ["staff"]}, {"groups": []}, {"groups": None}, {"groups": {"ml": 1}}])
def test_it_refuses_a_user_of_no_group_that_has_a_role(provider, groups):
    assert sign_in(provider, **groups)[1].status_code == 403
    assert not get_user_model().objects.exists()


def test_it_takes_the_roles_of_a_user_who_left_their_groups(provider):
    browser, _ = sign_in(provider)
    _, answer = sign_in(provider, groups=["staff"])
    assert answer.status_code == 403 and roles("alice") == set()
    assert browser.get("/api/v1/me/").json()["roles"] == []
    assert len(audited(verb="revoke", actor="alice")) == 2


def test_it_changes_roles_and_team_leads_with_the_groups_at_each_sign_in(provider):
    person("root", superuser=True)
    sign_in(provider, groups=["ops", "leads"])
    alice = user("alice")
    assert roles("alice") == {("fleet-admin", "")} and alice.is_staff
    assert [lead.path for lead in alice.quota_grants.all()] == ["root/vision"]
    sign_in(provider, groups=["ml"])
    alice.refresh_from_db()
    assert roles("alice") == {("editor", "vision"), ("viewer", "")} and not alice.is_staff
    assert not alice.quota_grants.exists()


def test_it_keeps_the_last_fleet_admin_and_says_so(provider):
    sign_in(provider, groups=["ops"])
    _, answer = sign_in(provider, groups=["ml"])
    assert answer.status_code == 302 and ("fleet-admin", "") in roles("alice")
    [line] = audited(verb="revoke", outcome="refused")
    assert line.name == "alice: fleet-admin in all namespaces" and "last fleet admin" in line.message


def test_it_changes_nothing_by_hand_that_groups_decide(provider, as_admin):
    sign_in(provider, groups=["ml", "leads"])
    held, lead = Grant.objects.filter(user__username="alice").first(), user("alice").quota_grants.get()
    asked = [
        as_admin.post("/api/v1/grants/", {"user": "alice", "role": "fleet-admin"}, format="json"),
        as_admin.delete(f"/api/v1/grants/{held.pk}/"),
        as_admin.delete(f"/api/v1/leads/{lead.pk}/"),
        as_admin.post("/api/v1/leads/", {"user": "alice", "path": "root"}, format="json"),
        as_admin.post("/api/v1/users/alice/password/", {"password": "a long password"}, format="json"),
    ]
    assert [answer.status_code for answer in asked] == [409] * 5
    assert roles("alice") == {("editor", "vision"), ("viewer", "")}


def test_it_leaves_roles_to_fleet_admins_where_no_groups_are_mapped(provider, settings, as_admin):
    settings.CONVOY_OIDC = OidcSettings(provider.issuer, CLIENT, SECRET)
    sign_in(provider)
    body = {"user": "alice", "role": "viewer"}
    assert as_admin.post("/api/v1/grants/", body, format="json").status_code == 201
    sign_in(provider)
    assert roles("alice") == {("viewer", "")}


@pytest.mark.parametrize("name", ["a b", "x" * 140 + "é" * 20, "../admin", "system:masters", "\x00", "\ud800", "a\nb"])
def test_it_refuses_names_that_no_user_can_have(provider, name):
    assert sign_in(provider, preferred_username=name)[1].status_code == 403


@pytest.mark.parametrize("claim", ["at_hash", "azp", "iss", "nonce", "sub"])
def test_it_refuses_a_claim_of_another_type_in_a_token_that_is_signed_well(provider, claim):
    for value in (["x"], [["x"]], {"x": 1}, 10**400, float("nan")):
        _, answer = sign_in(provider, fault="another claim", claim=claim, value=value)
        assert answer.status_code == 403 and "ID token" in answer.content.decode(), answer.content
        oidc.returns.cache_clear()
    assert not get_user_model().objects.exists()


@pytest.mark.parametrize("subject", ["a\x00b", "\ud800", "s" * 256])
def test_it_refuses_subjects_that_no_account_has(provider, subject):
    assert sign_in(provider, sub="a-1", fault="another subject", subject=subject)[1].status_code == 403
    assert not get_user_model().objects.exists()


@pytest.mark.parametrize("path", ["//evil.example", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"])
def test_it_goes_on_to_no_other_site(provider, path):
    browser = APIClient()
    query = provider.authorize(begin(browser, f"/oidc/signin/?next={path}"), **ALICE)
    assert browser.get("/oidc/callback/", query)["Location"] == "/"


def test_it_goes_on_to_where_the_user_was(provider):
    browser = APIClient()
    query = provider.authorize(begin(browser, "/oidc/signin/?next=/admin/"), **ALICE)
    assert browser.get("/oidc/callback/", query)["Location"] == "/admin/"


def test_it_says_so_when_the_provider_does_not_answer(settings):
    settings.CONVOY_OIDC = OidcSettings("http://127.0.0.1:9", CLIENT, SECRET)
    answer = APIClient().get("/oidc/signin/")
    assert answer.status_code == 503 and "cannot be asked" in answer.content.decode()


def test_it_refuses_a_provider_that_calls_itself_otherwise(provider, settings):
    settings.CONVOY_OIDC = OidcSettings(provider.issuer + "/", CLIENT, SECRET)
    assert APIClient().get("/oidc/signin/").status_code == 503


def test_it_offers_none_of_it_where_no_provider_is_set(settings):
    settings.CONVOY_OIDC = OidcSettings()
    assert [APIClient().get(path).status_code for path in ("/oidc/signin/", "/oidc/callback/")] == [404, 404]
    assert APIClient().get("/api/v1/session/").json()["oidc"] == ""


def test_it_limits_what_one_address_brings_back():
    answers = [APIClient().get("/oidc/callback/") for _ in range(21)]
    assert "too many attempts" in answers[-1].content.decode() and "too many" not in answers[0].content.decode()


def test_it_offers_the_company_at_both_sign_in_pages_and_leads_admins_to_the_admin(provider, as_admin):
    assert APIClient().get("/api/v1/session/").json()["oidc"] == "127.0.0.1"
    page = APIClient().get("/admin/login/?next=/admin/fleet/").content.decode()
    assert "Sign in with 127.0.0.1" in page and "/oidc/signin/?next=%2Fadmin%2Ffleet%2F" in page
    browser, _ = sign_in(provider, groups=["ops"])
    assert browser.get("/admin/").status_code == 200
    other, _ = sign_in(provider, sub="b-1", preferred_username="bob")
    assert other.get("/admin/").status_code == 302


def test_it_lets_fleet_admins_help_users_of_a_provider_that_is_set_no_more(provider, settings, as_admin):
    sign_in(provider)
    settings.CONVOY_OIDC = OidcSettings("https://another.example", CLIENT, groups=read_groups(GROUPS))
    body = {"password": "quite a long one"}
    assert as_admin.post("/api/v1/users/alice/password/", body, format="json").status_code == 204
    body = {"user": "alice", "role": "quota-admin"}
    assert as_admin.post("/api/v1/grants/", body, format="json").status_code == 201


def test_it_makes_one_user_of_two_first_sign_ins_at_once(provider):
    browsers = [APIClient(), APIClient()]
    queries = [provider.authorize(begin(browser), **ALICE) for browser in browsers]
    answers = [browser.get("/oidc/callback/", query) for browser, query in zip(browsers, queries, strict=True)]
    assert [answer.status_code for answer in answers] == [302, 302] and get_user_model().objects.count() == 1


@pytest.mark.parametrize("keys", [None, {}, [1], [{"kty": "RSA"}], [{"kty": "RSA", "n": 1, "e": []}]])
def test_it_refuses_a_sign_in_where_the_provider_has_no_usable_keys(provider, monkeypatch, keys):
    document = Provider._document
    monkeypatch.setattr(
        Provider, "_document", lambda self, url: {"keys": keys} if "jwks" in url else document(self, url)
    )
    _, answer = sign_in(provider)
    assert answer.status_code == 403 and "is not accepted" in answer.content.decode()


def test_it_signs_in_beside_a_key_of_a_curve_that_it_does_not_know(provider, monkeypatch):
    document, new = Provider._document, {"kty": "EC", "crv": "P-1024", "x": "AQAB", "y": "AQAB", "kid": "new"}

    def with_a_new_one(self, url):
        read = document(self, url)
        return {"keys": [new, *read["keys"]]} if "jwks" in url else read

    monkeypatch.setattr(Provider, "_document", with_a_new_one)
    assert sign_in(provider)[1].status_code == 302


@pytest.mark.parametrize("methods", [True, 5])
def test_it_says_that_a_discovery_document_cannot_be_used(provider, monkeypatch, methods):
    document = Provider._document

    def wrong(self, url):
        read = document(self, url)
        return read if "jwks" in url else {**read, "token_endpoint_auth_methods_supported": methods}

    monkeypatch.setattr(Provider, "_document", wrong)
    _, answer = sign_in(provider)
    assert answer.status_code == 503 and "token_endpoint_auth_methods_supported" in answer.content.decode()
