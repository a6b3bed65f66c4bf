"""Codes by which the command line signs in through a browser: for the program that began it, once, soon, and in the audit."""

import base64
import hashlib
from datetime import timedelta

import pytest
from rest_framework.test import APIClient

from fleet.api.sign_in.passwords import BACKEND
from fleet.models import AuditEntry, LoginCode, Token
from tests.support.people import client_of, person

pytestmark = pytest.mark.django_db
VERIFIER = "v" * 50
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
WANTED = {"challenge": CHALLENGE, "name": "convoy-cli on laptop"}


@pytest.fixture
def browser(editor):
    browser = APIClient()
    browser.force_login(editor, backend=BACKEND)
    return browser


def code(browser, **wanted):
    return browser.post("/api/v1/login/code/", WANTED | wanted, format="json")


def take(code, verifier=VERIFIER):
    return APIClient().post("/api/v1/login/token/", {"code": code, "verifier": verifier}, format="json")


def test_it_gives_a_token_of_the_user_for_twelve_hours(browser):
    made = code(browser).json()
    assert made["username"] == "vera" and not Token.objects.exists()
    answer = take(made["code"])
    assert answer.status_code == 201
    row = Token.objects.get()
    assert (row.user.username, row.expires_at - row.created_at) == ("vera", timedelta(hours=12))
    me = APIClient().get("/api/v1/me/", headers={"Authorization": f"Bearer {answer.json()['token']}"}).json()
    assert me["username"] == "vera"
    [line] = AuditEntry.objects.filter(verb="mint")
    assert (line.actor, line.name) == ("vera", "vera: convoy-cli on laptop")


def test_it_gives_one_token_for_one_code(browser):
    made = code(browser).json()["code"]
    assert [take(made).status_code for _ in range(3)] == [201, 403, 403] and Token.objects.count() == 1


@pytest.mark.parametrize("verifier", ["w" * 50, "x", CHALLENGE, "é"])
def test_it_gives_none_to_another_program_and_uses_the_code_up(browser, verifier):
    made = code(browser).json()["code"]
    assert take(made, verifier).status_code == 403
    assert take(made).status_code == 403 and not Token.objects.exists()


def test_it_gives_none_when_the_code_has_expired_or_its_user_was_disabled(browser, editor):
    late, stopped = code(browser).json()["code"], code(browser).json()["code"]
    row = LoginCode.objects.earliest("pk")
    LoginCode.objects.filter(pk=row.pk).update(expires_at=row.expires_at - timedelta(minutes=5, seconds=1))
    assert take(late).status_code == 403
    type(editor).objects.filter(pk=editor.pk).update(is_active=False)
    assert take(stopped).status_code == 403 and not Token.objects.exists()


@pytest.mark.parametrize(
    "wanted",
    [{"challenge": "plain"}, {"challenge": "+" * 43}, {"name": ""}, {"name": "x" * 64}, {"expires_in_s": 10**9}],
)
def test_it_refuses_what_makes_no_sense(browser, wanted):
    assert code(browser, **wanted).status_code == 422 and not LoginCode.objects.exists()


def test_it_makes_codes_for_browsers_alone(editor):
    assert code(APIClient()).status_code == 401
    assert code(client_of(editor)).status_code == 403
    signed_in = APIClient(enforce_csrf_checks=True)
    signed_in.force_login(person("nell"), backend=BACKEND)
    assert code(signed_in).status_code == 403 and not LoginCode.objects.exists()
