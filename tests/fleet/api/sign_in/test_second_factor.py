"""The second factor of local users: asked for at every door that takes a password, accepted once, bounded, and in the audit."""

import io
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from fleet.core.settings import AccessSettings
from fleet.models import AuditEntry, RecoveryCode, SecondFactor
from fleet.models.encrypted import cipher
from fleet.services.authorization import access, second_factors
from fleet.services.authorization.second_factors import ATTEMPTS, Proof, Verdict
from tests.support.people import PASSWORD, client_of, code_at, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def enrolled(editor):
    """The secret, the recovery codes, and a moment at which no code was used."""
    now = timezone.now() - timedelta(hours=1)
    secret = second_factors.begin(editor).secret
    return secret, second_factors.confirm(editor, code_at(secret, now), now=now)


def sign_in(username="vera", password=PASSWORD, browser=None, **more):
    body = {"username": username, "password": password, **more}
    return (browser or APIClient()).post("/api/v1/session/", body, format="json")


def refusals():
    return [entry.message for entry in AuditEntry.objects.filter(verb="sign-in", outcome="refused").order_by("pk")]


def test_it_asks_for_a_code_and_signs_in_with_it(enrolled):
    secret, _ = enrolled
    answer = sign_in()
    assert (answer.status_code, answer.json()["second_factor"], answer.json()["enrolment"]) == (401, "code", None)
    assert answer["Content-Type"] == "application/problem+json" and "sessionid" not in answer.cookies
    browser = APIClient()
    assert sign_in(browser=browser, code=code_at(secret, timezone.now())).status_code == 200
    assert browser.get("/api/v1/me/").json()["username"] == "vera"
    assert refusals() == ["right password, second factor wanted"]


def test_it_says_nothing_of_a_second_factor_to_wrong_passwords(enrolled):
    assert "second_factor" not in sign_in(password="wrong").json()
    assert sign_in(password="wrong", code=code_at(enrolled[0], timezone.now())).status_code == 401


def test_it_accepts_a_code_once_and_none_before_it(enrolled, editor):
    secret, _ = enrolled
    now = timezone.now()
    code, older = code_at(secret, now), code_at(secret, now - timedelta(seconds=30))
    verdicts = [second_factors.check(editor, Proof(text), now=now) for text in (code, code, older, "", "x")]
    assert verdicts == [Verdict.PASSED, Verdict.WRONG, Verdict.WRONG, Verdict.WANTED, Verdict.WRONG]


@pytest.mark.parametrize("late_s", [-90, 90])
def test_it_accepts_codes_of_a_clock_that_is_off_by_half_a_minute_and_no_more(enrolled, editor, late_s):
    secret, now = enrolled[0], timezone.now()
    far = code_at(secret, now + timedelta(seconds=late_s))
    assert second_factors.check(editor, Proof(far), now=now) is Verdict.WRONG
    near = code_at(secret, now + timedelta(seconds=late_s / 3))
    assert second_factors.check(editor, Proof(near), now=now) is Verdict.PASSED


@pytest.mark.parametrize("code", ["000000", "٠٠٠٠٠٠", "1", "9" * 40, "-" * 16, "a-b", " "])
def test_it_refuses_other_codes(enrolled, code):
    assert sign_in(code=code).status_code == 401


def test_it_accepts_each_recovery_code_once(enrolled, editor):
    _, codes = enrolled
    assert len(set(codes)) == 10 and not any(code in str(RecoveryCode.objects.values_list()) for code in codes)
    assert [sign_in(code=code).status_code for code in (codes[0], codes[0], codes[1].upper())] == [200, 401, 200]
    assert second_factors.recovery_codes_left(editor) == 8


def test_it_locks_after_ten_wrong_codes_from_wherever_they_come(enrolled, editor):
    secret, now = enrolled[0], timezone.now()
    for _ in range(ATTEMPTS):
        assert second_factors.check(editor, Proof("000000"), now=now) is Verdict.WRONG
    right = code_at(secret, now)
    assert second_factors.check(editor, Proof(right), now=now) is Verdict.LOCKED
    assert sign_in(code=right).status_code == 429
    later = now + timedelta(minutes=15, seconds=1)
    assert second_factors.check(editor, Proof(code_at(secret, later)), now=later) is Verdict.PASSED


def test_it_counts_no_right_password_as_a_failure(enrolled):
    browser = APIClient()
    for _ in range(12):
        assert sign_in(browser=browser).status_code == 401
    assert sign_in(browser=browser, code=code_at(enrolled[0], timezone.now())).status_code == 200


def test_it_is_asked_for_at_the_admin_too(enrolled, editor):
    type(editor).objects.update(is_staff=True)
    given = {"username": "vera", "password": PASSWORD}
    refused = Client().post("/admin/login/", given)
    assert refused.status_code == 200 and "second factor wanted" in refused.content.decode()
    wrong = Client().post("/admin/login/", {**given, "code": "000000"})
    assert wrong.status_code == 200
    right = Client().post("/admin/login/?next=/admin/", {**given, "code": code_at(enrolled[0], timezone.now())})
    assert (right.status_code, right["Location"]) == (302, "/admin/")


def test_it_keeps_the_secret_encrypted(enrolled, editor):
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT secret FROM fleet_secondfactor")
        [[text]] = cursor.fetchall()
    assert enrolled[0] not in text and enrolled[0] in cipher().decrypt(text.encode()).decode()


def test_it_is_set_up_and_removed_in_the_browser(editor):
    browser = APIClient()
    sign_in(browser=browser)
    begun = browser.post("/api/v1/second-factor/").json()
    assert begun["uri"].startswith("otpauth://totp/") and begun["image"].startswith("data:image/svg+xml")
    assert sign_in().status_code == 200, "it counts once it is confirmed"
    assert browser.put("/api/v1/second-factor/", {"code": "000000"}, format="json").status_code == 422
    now = timezone.now()
    given = {"code": code_at(begun["secret"], now)}
    codes = browser.put("/api/v1/second-factor/", given, format="json").json()["recovery_codes"]
    state = browser.get("/api/v1/second-factor/").json()
    assert (state["is_set"], state["has_app"], state["is_required"]) == (True, True, False)
    assert state["recovery_codes_left"] == 10
    assert browser.post("/api/v1/second-factor/").status_code == 409
    assert browser.put("/api/v1/second-factor/", given, format="json").status_code == 409
    assert sign_in().status_code == 401
    assert browser.post("/api/v1/second-factor/code/", given, format="json").status_code == 422
    assert browser.post("/api/v1/second-factor/code/", {"code": codes[0]}, format="json").status_code == 204
    assert sign_in().status_code == 200 and not RecoveryCode.objects.exists()
    verbs = AuditEntry.objects.filter(kind="User").exclude(verb="sign-in").order_by("pk")
    assert [(line.actor, line.verb) for line in verbs] == [
        ("vera", "set-second-factor"), ("vera", "remove-second-factor")
    ]  # fmt: skip


def test_it_is_changed_by_no_token(editor, enrolled):
    client = client_of(editor)
    asked = [
        client.post("/api/v1/second-factor/"),
        client.put("/api/v1/second-factor/", {"code": "1"}, format="json"),
        client.post("/api/v1/second-factor/code/", {"code": enrolled[1][0]}, format="json"),
    ]
    assert [answer.status_code for answer in asked] == [403] * 3 and second_factors.is_set(editor)


def test_it_is_reset_by_fleet_admins_alone(enrolled, as_admin, as_viewer, editor):
    path = "/api/v1/users/vera/reset-second-factor/"
    assert as_viewer.post(path).status_code == 403 and second_factors.is_set(editor)
    assert as_admin.post(path).status_code == 204 and sign_in().status_code == 200
    assert as_admin.post("/api/v1/users/ghost/reset-second-factor/").status_code == 404


@pytest.fixture
def required(settings):
    settings.CONVOY_ACCESS = AccessSettings(second_factor_for_admins=True)
    return person("ada2", ("fleet-admin", ""))


def test_it_makes_admins_set_one_up_where_the_setting_says_so(required, editor):
    assert sign_in().status_code == 200, "an editor needs none"
    answer = sign_in("ada2").json()
    assert answer["second_factor"] == "enrolment"
    assert sign_in("ada2", code="000000").status_code == 401
    browser = APIClient()
    done = sign_in("ada2", browser=browser, code=code_at(answer["enrolment"]["secret"], timezone.now()))
    assert done.status_code == 200 and len(done.json()["recovery_codes"]) == 10
    assert sign_in("ada2").json()["second_factor"] == "code"
    assert "recovery_codes" not in sign_in("ada2", code=done.json()["recovery_codes"][0]).json()
    given = {"code": done.json()["recovery_codes"][1]}
    assert browser.post("/api/v1/second-factor/code/", given, format="json").status_code == 409


def test_it_lets_no_admin_without_one_into_the_admin(required):
    get_user_model().objects.update(is_staff=True)
    page = Client().post("/admin/login/", {"username": "ada2", "password": PASSWORD})
    assert page.status_code == 200 and "at the console first" in page.content.decode()
    assert not SecondFactor.objects.exists()


def test_a_sign_in_link_asks_for_the_code_too_and_is_used_up_by_a_right_one_alone(enrolled, editor):
    link, browser = access.make_signin_link(editor, now=timezone.now()), APIClient()
    for body in ({}, {"code": ""}, {"code": "000000"}, {"code": "x" * 100_000}):
        answer = browser.post(link, body)
        assert answer.status_code == 401 and "sessionid" not in answer.cookies
        assert 'name="code"' in answer.content.decode() and "vera" not in answer.content.decode()
    assert browser.post(link, {"code": code_at(enrolled[0], timezone.now())}).status_code == 302
    assert browser.get("/api/v1/me/").json()["username"] == "vera"
    assert APIClient().post(link, {"code": enrolled[1][0]}).status_code == 410
    assert refusals() == ["right link, second factor wanted"] * 2 + ["right link, wrong second factor"] * 2


def test_a_link_takes_a_recovery_code_once(enrolled, editor):
    for status in (302, 401):
        link = access.make_signin_link(editor, now=timezone.now())
        assert APIClient().post(link, {"code": enrolled[1][0]}).status_code == status


def test_wrong_codes_at_links_lock_the_second_factor_as_those_beside_passwords_do(enrolled, editor):
    link = access.make_signin_link(editor, now=timezone.now())
    statuses = [APIClient().post(link, {"code": "000000"}).status_code for _ in range(ATTEMPTS + 1)]
    assert statuses == [401] * ATTEMPTS + [429]
    assert APIClient().post(link, {"code": code_at(enrolled[0], timezone.now())}).status_code == 429


def test_a_used_or_old_link_asks_for_nothing_and_tries_no_code(enrolled, editor):
    old = access.make_signin_link(editor, now=timezone.now() - timedelta(minutes=16))
    assert APIClient().post(old, {"code": "000000"}).status_code == 410
    assert SecondFactor.objects.get().attempts == 0


def test_a_link_of_an_admin_who_needs_a_second_factor_sets_it_up_first(admin, settings):
    settings.CONVOY_ACCESS = AccessSettings(second_factor_for_admins=True)
    link, browser = access.make_signin_link(admin, now=timezone.now()), APIClient()
    page = browser.post(link)
    secret = SecondFactor.objects.get().secret
    assert page.status_code == 401 and secret in page.content.decode() and "sessionid" not in page.cookies
    assert "img-src" in page["Content-Security-Policy"] and "script" not in page.content.decode()
    assert secret in browser.post(link, {"code": "000000"}).content.decode(), "the same, not a new one for each try"
    done = browser.post(link, {"code": code_at(secret, timezone.now())})
    assert done.status_code == 200 and "-" in done.content.decode() and RecoveryCode.objects.count() == 10
    assert browser.get("/api/v1/me/").json()["username"] == "ada"


def test_the_machine_s_holder_removes_a_lost_second_factor_and_the_audit_has_it(enrolled, editor):
    out = io.StringIO()
    call_command("signin_link", user="vera", reset_second_factor=True, stdout=out)
    assert APIClient().post(out.getvalue().strip()).status_code == 302
    assert AuditEntry.objects.filter(verb="remove-second-factor", name="vera").exists()
