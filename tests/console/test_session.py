"""The session: it may end while somebody works, a link opens it once, and who may not do a thing is told so beforehand."""

import base64
import re
import time

import pytest
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.contrib.auth import get_user_model
from django.utils import timezone
from playwright.sync_api import expect

from fleet.services.authorization import access
from tests.console.builders import PASSWORD, PATIENCE_MS, go, press_despite, sign_in, sign_in_again
from tests.support.people import person
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


def code_of(secret: str) -> str:
    return TOTP(base64.b32decode(secret), 6, SHA1(), 30).generate(int(time.time())).decode()


def sign_in_by_form(page):
    page.get_by_label("User name").fill("ada")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def test_it_signs_in_by_its_form_that_keeps_nobody_out(page, axe):
    page.goto("/")
    page.get_by_label("User name").fill("ada")
    assert axe(page) == []
    page.get_by_label("Password", exact=True).fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Fleet", level=1)).to_be_visible()


def test_it_keeps_a_manifest_that_is_being_written(page, aside, north):
    sign_in(page, at="/submit")
    name = page.get_by_label("Name", exact=True)
    expect(name).to_have_value("pytorch-test")
    page.context.clear_cookies(name="sessionid")
    name.fill("half-written")
    sign_in_again(page)
    expect(name).to_have_value("half-written")
    expect(page.get_by_text("half-written would start on north")).to_be_visible()


def test_it_keeps_what_is_asked_in_a_dialog(world, page, aside, north):
    aside(world.apply, pytorch_job("llama", duration="10h"))
    sign_in(page, at="/fleet/north")
    page.get_by_role("button", name="Cordon", exact=True).click()
    page.context.clear_cookies(name="sessionid")
    press_despite(page.get_by_role("dialog", name="Cordon north").get_by_role("button", name="Cordon"))
    sign_in_again(page)
    page.get_by_role("dialog", name="Cordon north").get_by_role("button", name="Cordon").click()
    expect(page.get_by_role("button", name="Open again")).to_be_visible()


def test_it_goes_on_though_an_answer_from_before_comes_late(page, north):
    sign_in(page)
    late = []
    page.route("**/api/v1/nodes/?*", lambda route: late.append((route, route.fetch())), times=1)
    page.context.clear_cookies(name="sessionid")
    press_despite(page.get_by_role("article", name="north").get_by_role("link", name="north"))
    for _ in range(PATIENCE_MS // 20):
        if late:
            break
        page.wait_for_timeout(20)
    # Asked again because of the late answer, or before it by news of a node.
    with page.expect_response(lambda heard: "/api/v1/nodes/" in heard.url and heard.status == 200):
        sign_in_again(page)
        [(route, answer)] = late
        assert answer.status == 401
        route.fulfill(response=answer)
    expect(page.get_by_role("table", name="Nodes").get_by_role("row").filter(has_text="north-pool0-0")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_it_signs_in_once_by_a_link(page, aside, north):
    admin = aside(get_user_model().objects.get, username="ada")
    link = aside(access.make_signin_link, admin, now=timezone.now())
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("article", name="north")).to_be_visible()


def test_it_tells_a_viewer_why_each_action_is_not_theirs(world, page, aside, north):
    aside(world.apply, pytorch_job("llama", duration="10h"))
    aside(world.expect, "llama", "Running", on="north")
    aside(person, "sam", ("viewer", ""))
    sign_in(page, "sam")
    for path, names in {
        "/fleet/north": ("Cordon", "Drain"), "/submit": ("Submit",), "/join": ("Check the connection", "Join the fleet"),
    }.items():  # fmt: skip
        go(page, path)
        for name in names:
            button = page.get_by_role("button", name=name, exact=True)
            expect(button).to_be_disabled()
            expect(button).to_have_attribute("title", "Your roles do not allow this")
            button.focus()
            expect(button).to_be_focused()
    go(page, "/jobs")
    page.get_by_role("checkbox", name="Select llama").check()
    for name in ("Suspend", "Resume", "Delete"):
        expect(page.get_by_role("toolbar").get_by_role("button", name=name)).to_be_disabled()
    page.get_by_role("button", name="Actions for llama").click()
    expect(page.get_by_role("menuitem", disabled=True)).to_have_count(8)
    expect(page.get_by_role("menuitem", name="Suspend")).to_contain_text("Your roles do not allow this")


def test_it_sets_a_second_factor_up_and_asks_for_it(page, axe, aside, north):
    sign_in(page, at="/access")
    page.get_by_role("button", name="Set up an authenticator app").click()
    secret = page.get_by_role("img", name="The secret as a QR code").locator("xpath=../p/code").inner_text()
    page.get_by_label("Code of your authenticator app").fill(code_of(secret))
    page.get_by_role("button", name="Turn it on").click()
    codes = page.get_by_role("status").filter(has_text="Recovery codes").get_by_role("code")
    expect(codes).to_have_count(10)
    code = codes.first.inner_text()
    assert axe(page) == []
    page.context.clear_cookies()
    page.goto("/")
    page.get_by_label("User name").fill("ada")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("Code of your authenticator app").fill(code)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Fleet", level=1)).to_be_visible()


def test_it_offers_no_sign_in_of_the_command_line_at_an_incomplete_address(page, axe, north):
    sign_in(page, at="/login?name=convoy-cli+on+laptop")
    expect(page.get_by_role("heading", name="This address is incomplete")).to_be_visible()
    expect(page.get_by_role("button", name="Allow sign-in")).to_have_count(0)
    assert axe(page) == []


def test_it_hands_a_code_to_the_command_line(page, axe, north):
    sign_in(page, at=f"/login?challenge={'c' * 43}&name=convoy-cli+on+laptop&life=3600")
    expect(page.get_by_text("“convoy-cli on laptop” gets a token with everything that ada may do.")).to_be_visible()
    assert axe(page) == []
    page.get_by_role("button", name="Allow sign-in").click()
    expect(page.get_by_role("status").get_by_role("code")).to_have_text(re.compile(r"[\w-]{43}"))
    # With a port the code goes there.
    sign_in(page, at=f"/login?challenge={'c' * 43}&name=x&life=3600&port=9&state=s")
    page.route("http://127.0.0.1:9/**", lambda route: route.fulfill(body="signed in"))
    page.get_by_role("button", name="Allow sign-in").click()
    page.wait_for_url(re.compile(r"^http://127\.0\.0\.1:9/callback\?code=[\w-]+&state=s$"))
    page.goto("/")


def test_it_adds_a_passkey_and_signs_in_with_it(page, axe, north):
    """Chromium makes the key; browsers keep one for a host name, and none for an address."""
    sign_in(page, at="/access")
    expect(page.get_by_text("passkeys need a host name")).to_be_visible()
    devtools = page.context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasUserVerification": True, "isUserVerified": True}
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": {**options, "automaticPresenceSimulation": True}})
    home = page.url.replace("127.0.0.1", "localhost").removesuffix("/access")
    page.goto(home)
    sign_in_by_form(page)
    expect(page.get_by_role("heading", name="Fleet", level=1)).to_be_visible()
    page.goto(f"{home}/access")
    page.get_by_label("Name of a new passkey").fill("laptop")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_role("status").filter(has_text="Recovery codes").get_by_role("code")).to_have_count(10)
    expect(page.get_by_text("laptop, for localhost")).to_be_visible()
    assert axe(page) == []
    page.context.clear_cookies()
    page.goto(home)
    sign_in_by_form(page)
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("heading", name="Fleet", level=1)).to_be_visible()
    page.goto(f"{home}/access")
    page.get_by_role("button", name="Remove passkey laptop").click()
    expect(page.get_by_text("Off: your password alone signs you in.")).to_be_visible()
