"""Passkeys as second factors: what is asked of a browser, which answers are right, and what a session alone cannot change."""

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import AuthenticatorData
from rest_framework.test import APIClient

from fleet.core.settings import AccessSettings
from fleet.models import AuditEntry, Passkey, RecoveryCode
from fleet.services.authorization import access, second_factors
from fleet.services.authorization.passkeys import Site
from tests.support.passkey import Authenticator
from tests.support.people import PASSWORD, client_of, code_at, person

pytestmark = pytest.mark.django_db
FACTOR = "/api/v1/second-factor/"
KEYS = f"{FACTOR}passkeys/"


def browser_of(user, host="localhost"):
    """Signed in already, as by a session from before."""
    browser = APIClient(SERVER_NAME=host)
    browser.force_login(user, "fleet.api.sign_in.passwords.PasswordBackend")
    return browser


def sign_in(browser=None, **more):
    body = {"username": "vera", "password": PASSWORD, **more}
    return (browser or APIClient(SERVER_NAME="localhost")).post("/api/v1/session/", body, format="json")


def add(browser, key, name="laptop", **proof):
    asked = browser.post(f"{KEYS}options/").json()
    return browser.post(KEYS, {"name": name, **key.create(asked["new"]), **proof}, format="json")


@pytest.fixture
def vera():
    return person("vera", ("editor", "vision"))


@pytest.fixture
def key(vera):
    """Her passkey."""
    made = Authenticator()
    assert add(browser_of(vera), made).status_code == 201
    return made


def asked_at_sign_in():
    answer = sign_in()
    assert (answer.status_code, answer.json()["second_factor"]) == (401, "code")
    return answer.json()["passkey"]


def refused(answer):
    assert answer.status_code == 401 and "sessionid" not in answer.cookies, answer.content


def test_it_is_added_with_recovery_codes_and_asked_for_beside_the_password(vera):
    key, browser = Authenticator(), browser_of(vera)
    answer = add(browser, key)
    assert answer.status_code == 201 and len(answer.json()["recovery_codes"]) == 10
    state = browser.get(FACTOR).json()
    assert (state["is_set"], state["has_app"], state["recovery_codes_left"]) == (True, False, 10)
    assert [(each["name"], each["site"], each["is_for_this_address"]) for each in state["passkeys"]] == [
        ("laptop", "localhost", True)
    ]
    refused(sign_in())
    signed = sign_in(passkey=key.get(asked_at_sign_in()))
    assert signed.status_code == 200 and signed.json()["username"] == "vera"
    assert Passkey.objects.get().last_used_at is not None
    assert list(AuditEntry.objects.filter(verb="add-passkey").values_list("name", flat=True)) == ["vera"]


def test_it_says_nothing_of_passkeys_to_wrong_passwords(key):
    assert "passkey" not in sign_in(password="wrong").json()


def test_an_answer_is_accepted_once(key):
    answer = key.get(asked_at_sign_in())
    assert sign_in(passkey=answer).status_code == 200
    refused(sign_in(passkey=answer))


LIES = {
    "another site's": {"host": "evil.example"},
    "without a touch": {"flags": AuthenticatorData.FLAG(0)},
    "of a registration": {"type": "webauthn.create"},
    "to another question": {"challenge": websafe_encode(b"x" * 40)},
}


@pytest.mark.parametrize("lie", LIES)
def test_it_refuses_what_is_signed(key, lie):
    refused(sign_in(passkey=key.get(asked_at_sign_in(), **LIES[lie])))


def test_it_refuses_what_was_signed_at_a_look_alike_address(key):
    key.origin = "https://localhost.evil.example"
    refused(sign_in(passkey=key.get(asked_at_sign_in())))


def test_it_refuses_the_key_of_another_user_and_the_question_to_another_user(key):
    other = Authenticator()
    add(browser_of(person("mal")), other)
    refused(sign_in(passkey=other.get(asked_at_sign_in())))
    mals = sign_in(username="mal").json()["passkey"]
    refused(sign_in(passkey=key.get(mals)))


def test_it_refuses_a_changed_signature_and_one_that_comes_late(key):
    answer = key.get(asked_at_sign_in())
    data = bytearray(websafe_decode(answer["authenticator_data"]))
    data[-1] ^= 1
    refused(sign_in(passkey={**answer, "authenticator_data": websafe_encode(bytes(data))}))
    late = key.get(asked_at_sign_in())
    with time_machine.travel(timezone.now() + timedelta(minutes=6), tick=False):
        refused(sign_in(passkey=late))


def test_it_refuses_a_copy_of_a_key_whose_counter_does_not_grow(key):
    assert sign_in(passkey=key.get(asked_at_sign_in())).status_code == 200
    key.counter -= 1
    refused(sign_in(passkey=key.get(asked_at_sign_in())))


def test_a_key_without_a_counter_is_used_again_and_again(vera):
    key = Authenticator(counts=False)
    add(browser_of(vera), key)
    assert [sign_in(passkey=key.get(asked_at_sign_in())).status_code for _ in range(3)] == [200] * 3


@pytest.mark.parametrize("part", ["id", "client_data", "authenticator_data", "signature"])
@pytest.mark.parametrize("text", ["", "x", "A" * 16_000, "²", "_-_-", websafe_encode(b'{"challenge":[[]]}'), "\x00"])
def test_it_refuses_what_is_none_of_webauthn(key, part, text):
    answer = sign_in(passkey={**key.get(asked_at_sign_in()), part: text})
    assert answer.status_code in (400, 401, 422) and "sessionid" not in answer.cookies


@pytest.mark.parametrize("text", ["x", "A" * 16_000, websafe_encode(b"\x81" * 9_000), websafe_encode(b"\xa0"), "\x00"])
@pytest.mark.parametrize("part", ["client_data", "attestation", "id"])
def test_it_adds_nothing_that_is_none_of_webauthn(vera, part, text):
    browser = browser_of(vera)
    asked = browser.post(f"{KEYS}options/").json()
    answer = browser.post(KEYS, {"name": "x", **Authenticator().create(asked["new"]), part: text}, format="json")
    assert answer.status_code in (400, 422) and not Passkey.objects.exists()


def test_a_recovery_code_stands_in_for_a_lost_key_once(vera):
    codes = add(browser_of(vera), Authenticator()).json()["recovery_codes"]
    assert sign_in(code=codes[0]).status_code == 200
    refused(sign_in(code=codes[0]))


def test_a_session_alone_adds_removes_and_replaces_nothing(vera, key):
    """Whoever has stolen it would keep the account with a key of their own."""
    browser, mine = browser_of(vera), Passkey.objects.get()
    assert add(browser, Authenticator()).status_code == 422
    assert browser.post(f"{KEYS}{mine.pk}/remove/", {}, format="json").status_code == 422
    secret = browser.post(FACTOR).json()["secret"]
    code = code_at(secret, timezone.now())
    assert browser.put(FACTOR, {"code": code}, format="json").status_code == 422
    assert not second_factors.has_app(vera) and Passkey.objects.count() == 1
    asked = browser.post(f"{KEYS}options/").json()["known"]
    assert browser.put(FACTOR, {"code": code, "passkey": key.get(asked)}, format="json").json() == {
        "recovery_codes": []
    }


def test_another_key_is_added_with_the_first_and_each_signs_in(vera, key):
    browser, second = browser_of(vera), Authenticator()
    asked = browser.post(f"{KEYS}options/").json()
    given = {"name": "phone", **second.create(asked["new"]), "passkey": key.get(asked["known"])}
    assert browser.post(KEYS, given, format="json").json() == {"recovery_codes": []}
    for each in (key, second):
        assert sign_in(passkey=each.get(asked_at_sign_in())).status_code == 200
    assert RecoveryCode.objects.count() == 10


def test_it_is_removed_with_a_proof_and_recovery_codes_go_with_the_last_factor(vera, key):
    browser, row = browser_of(vera), Passkey.objects.get()
    asked = browser.post(f"{KEYS}options/").json()["known"]
    answer = browser.post(f"{KEYS}{row.pk}/remove/", {"passkey": key.get(asked)}, format="json")
    assert answer.status_code == 204 and not RecoveryCode.objects.exists()
    assert sign_in().status_code == 200
    assert browser.post(f"{KEYS}{row.pk}/remove/", {}, format="json").status_code == 404


def test_nobody_removes_the_key_of_another(vera, key):
    answer = browser_of(person("mal")).post(f"{KEYS}{Passkey.objects.get().pk}/remove/", {}, format="json")
    assert answer.status_code == 404 and Passkey.objects.count() == 1


def test_a_token_changes_none_of_it(vera, key):
    client = client_of(vera)
    for path in (f"{KEYS}options/", KEYS, f"{KEYS}{Passkey.objects.get().pk}/remove/"):
        assert client.post(path, {}, format="json").status_code == 403


def test_it_is_for_the_host_name_it_was_made_at(vera, key):
    elsewhere = APIClient(SERVER_NAME="127.0.0.1")
    assert sign_in(elsewhere).json()["passkey"] is None
    answer = browser_of(vera, "127.0.0.1").post(f"{KEYS}options/")
    assert answer.status_code == 409 and "host name" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("origin", "host", "word"),
    [
        ("https://convoy.example.com", "convoy.example.com", ""),
        ("https://convoy.example.com:8443", "convoy.example.com", ""),
        ("http://localhost:8000", "localhost", ""),
        ("http://convoy.example.com", "convoy.example.com", "HTTPS"),
        ("https://10.0.0.1:8443", "10.0.0.1", "host name"),
        ("https://[::1]:8443", "[::1]", "host name"),
        ("https://[::1]", "[::1]", "host name"),
    ],
)
def test_it_says_where_browsers_keep_no_passkeys(origin, host, word):
    site = Site(origin)
    assert site.host == host and word in site.fault and bool(word) == bool(site.fault)


def test_an_admin_who_needs_a_second_factor_has_one_in_a_passkey_and_keeps_it(settings):
    settings.CONVOY_ACCESS = AccessSettings(second_factor_for_admins=True)
    vera = person("vera", superuser=True)
    key, browser = Authenticator(), browser_of(vera)
    add(browser, key)
    assert sign_in(passkey=key.get(asked_at_sign_in())).status_code == 200
    asked = browser.post(f"{KEYS}options/").json()["known"]
    body = {"passkey": key.get(asked)}
    assert browser.post(f"{KEYS}{Passkey.objects.get().pk}/remove/", body, format="json").status_code == 409


def test_a_fleet_admin_s_reset_forgets_passkeys_too(vera, key, as_admin):
    assert as_admin.post("/api/v1/users/vera/reset-second-factor/").status_code < 300
    assert not Passkey.objects.exists() and sign_in().status_code == 200


def test_a_sign_in_link_takes_a_recovery_code_of_a_user_who_has_passkeys(vera):
    codes = add(browser_of(vera), Authenticator()).json()["recovery_codes"]
    link, browser = access.make_signin_link(vera, now=timezone.now()), APIClient(SERVER_NAME="localhost")
    assert browser.post(link).status_code == 401
    assert browser.post(link, {"code": codes[0]}).status_code == 302
