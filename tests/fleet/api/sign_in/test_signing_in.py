"""Tokens, sessions and one-time links: who gets in, who does not, and what is written down."""

from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from fleet.api.sign_in import signing_in
from fleet.api.sign_in.signing_in import PER_MINUTE
from fleet.limits.buckets import Buckets
from fleet.models import SigninLink, Token
from fleet.services.authorization import access
from tests.support.people import client_of

pytestmark = pytest.mark.django_db
PASSWORD = "a long password"


def sign_in(client: APIClient, username: str, password: str):
    client.get("/api/v1/session/")
    csrf = client.cookies["csrftoken"].value
    return client.post("/api/v1/session/", {"username": username, "password": password}, headers={"X-CSRFToken": csrf})


def ask_with(text: str):
    return APIClient().get("/api/v1/me/", headers={"Authorization": f"Bearer {text}"})


def test_it_knows_a_token_and_says_what_its_user_may(editor):
    answer = client_of(editor).get("/api/v1/me/").json()
    assert answer["username"] == "vera" and answer["roles"] == [{"role": "editor", "namespace": "vision"}]
    assert answer["can"]["apply"] and not answer["can"]["join"]


@pytest.mark.parametrize("text", ["", "x", "cvy_short", "cvy_" + "a" * 43, "cvy_" + "é" * 43, "cvy_" + "a" * 4000])
def test_it_refuses_unknown_tokens(db, text):
    answer = ask_with(text)
    assert answer.status_code == 401 and answer["WWW-Authenticate"].startswith("Bearer")
    assert answer.json()["status"] == 401


def test_it_refuses_an_expired_token_and_says_so(editor):
    then = timezone.now() - timedelta(hours=2)
    _, text = access.mint(editor, "old", life=timedelta(hours=1), now=then)
    answer = ask_with(text)
    assert (answer.status_code, answer.json()["detail"]) == (401, "the token has expired")


def test_it_refuses_the_token_of_a_stopped_user(editor):
    _, text = access.mint(editor, "mine", life=None, now=timezone.now())
    editor.is_active = False
    editor.save(update_fields=["is_active"])
    assert ask_with(text).status_code == 401


def test_it_writes_the_use_of_a_token_once_a_minute(editor):
    now = timezone.now()
    row, text = access.mint(editor, "mine", life=None, now=now)
    for later, written in ((0, 0), (30, 0), (61, 61)):
        access.verify(text, now=now + timedelta(seconds=later))
        row.refresh_from_db()
        assert row.last_used_at == now + timedelta(seconds=written)


def test_it_mints_a_token_shows_it_once_and_revokes_it(as_editor):
    made = as_editor.post("/api/v1/tokens/", {"name": "laptop", "expires_in_s": 3600}, format="json").json()
    assert ask_with(made["token"]).status_code == 200
    assert all("token" not in row and "digest" not in row for row in as_editor.get("/api/v1/tokens/").json()["results"])
    assert as_editor.delete(f"/api/v1/tokens/{made['id']}/").status_code == 204
    assert ask_with(made["token"]).json()["detail"] == "the token was revoked"


def test_it_refuses_to_revoke_the_token_of_somebody_else(as_editor, as_viewer, viewer):
    theirs = Token.objects.get(user=viewer)
    assert as_editor.delete(f"/api/v1/tokens/{theirs.pk}/").status_code == 404


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": "x" * 64}, {"name": "x", "expires_in_s": 10**12}, []])
def test_it_refuses_tokens_that_make_no_sense(as_editor, body):
    before = Token.objects.count()
    answer = as_editor.post("/api/v1/tokens/", body, format="json")
    assert answer.status_code == 422 and answer.json()["errors"]
    assert Token.objects.count() == before


def test_it_opens_and_ends_a_session(editor):
    browser = APIClient(enforce_csrf_checks=True)
    assert sign_in(browser, "vera", PASSWORD).json()["username"] == "vera"
    assert browser.get("/api/v1/me/").status_code == 200
    csrf = browser.cookies["csrftoken"].value
    assert browser.delete("/api/v1/session/", headers={"X-CSRFToken": csrf}).status_code == 204
    assert browser.get("/api/v1/me/").status_code == 401


def test_it_lets_an_answer_from_before_take_no_new_session_away(editor):
    browser = APIClient(enforce_csrf_checks=True)
    sign_in(browser, "vera", PASSWORD)
    browser.session.delete()
    late = browser.get("/api/v1/me/")
    assert late.status_code == 401 and "sessionid" not in late.cookies
    sign_in(browser, "vera", PASSWORD)
    assert browser.get("/api/v1/me/").status_code == 200


def test_it_wants_the_csrf_token_back(editor):
    browser = APIClient(enforce_csrf_checks=True)
    answer = browser.post("/api/v1/session/", {"username": "vera", "password": PASSWORD})
    assert answer.status_code == 403 and "CSRF" in answer.json()["detail"]
    sign_in(browser, "vera", PASSWORD)
    assert browser.post("/api/v1/tokens/", {"name": "x"}, format="json").status_code == 403


def test_it_explains_that_plain_http_has_no_cookies_where_they_are_for_https(editor, settings):
    settings.CSRF_COOKIE_SECURE, settings.SECURE_PROXY_SSL_HEADER = True, ("HTTP_X_FORWARDED_PROTO", "https")
    browser, body = APIClient(enforce_csrf_checks=True), {"username": "vera", "password": PASSWORD}
    path = access.make_signin_link(editor, now=timezone.now())
    for refused in (browser.post("/api/v1/session/", body), browser.post(path)):
        assert refused.status_code == 403 and "CONVOY_HTTPS=false" in refused.content.decode()
    by_proxy = browser.post("/api/v1/session/", body, headers={"X-Forwarded-Proto": "https"})
    assert by_proxy.status_code == 403 and "CONVOY_HTTPS" not in by_proxy.content.decode()


def test_it_locks_out_who_keeps_guessing(editor):
    browser = APIClient(enforce_csrf_checks=True)
    answers = [sign_in(browser, "vera", f"guess {i}").status_code for i in range(11)]
    assert answers[0] == 401 and answers[-1] == 429
    answer = sign_in(browser, "vera", PASSWORD)
    assert answer.status_code == 429 and answer["Content-Type"] == "application/problem+json"


def test_it_slows_down_guesses_at_one_user_from_many_addresses(editor, monkeypatch):
    monkeypatch.setattr(signing_in, "ATTEMPTS", Buckets(PER_MINUTE / 60, PER_MINUTE, clock=lambda: 0.0))
    browsers = [APIClient(enforce_csrf_checks=True, REMOTE_ADDR=f"10.0.0.{i}") for i in range(PER_MINUTE + 2)]
    answers = [sign_in(browser, "vera", f"guess {i}") for i, browser in enumerate(browsers)]
    assert [each.status_code for each in answers[:PER_MINUTE]] == [401] * PER_MINUTE
    assert answers[-1].status_code == 429 and answers[-1]["Retry-After"]


def test_it_signs_in_by_a_link_once(editor):
    path = access.make_signin_link(editor, now=timezone.now())
    browser = APIClient(enforce_csrf_checks=True)
    for preview in (browser.head(path), browser.get(path), browser.get(path)):
        assert preview.status_code == 200 and "sessionid" not in preview.cookies
    assert browser.post(path).status_code == 403
    answer = browser.post(path, headers={"X-CSRFToken": browser.cookies["csrftoken"].value})
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert browser.get("/api/v1/me/").json()["username"] == "vera"
    assert APIClient().post(path).status_code == 410


def test_the_page_of_a_link_says_nothing_of_it_and_runs_nothing(editor):
    path = access.make_signin_link(editor, now=timezone.now())
    good, bad = APIClient().get(path), APIClient().get("/signin/never/")
    assert (good.status_code, bad.status_code, bad["Cache-Control"]) == (200, 200, good["Cache-Control"])
    assert "no-store" in good["Cache-Control"] and "script" not in good.content.decode()
    assert path.split("/")[2] not in good.content.decode() and "default-src 'self'" in good["Content-Security-Policy"]


def test_it_refuses_a_link_that_is_too_old(editor):
    path = access.make_signin_link(editor, now=timezone.now() - timedelta(minutes=16))
    assert APIClient().post(path).status_code == 410


def test_it_keeps_neither_tokens_nor_links(editor):
    _, text = access.mint(editor, "mine", life=None, now=timezone.now())
    path = access.make_signin_link(editor, now=timezone.now())
    kept = str(list(Token.objects.values())) + str(list(SigninLink.objects.values()))
    assert text not in kept and path.split("/")[2] not in kept
