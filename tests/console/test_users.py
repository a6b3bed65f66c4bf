"""Users and team leads in the console: made, given roles and passwords, disabled; the last fleet admin stays; audited."""

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import expect

from fleet.models import AuditEntry, Grant
from quotas.models import QuotaGrant
from tests.console.builders import sign_in, start_tree
from tests.support.people import person

pytestmark = pytest.mark.django_db(transaction=True)


def row(page, user: str):
    return page.get_by_role("table", name="Users and roles").get_by_role("row").filter(has_text=user)


def choose(page, user: str, action: str) -> None:
    page.get_by_role("button", name=f"Actions for {user}").click()
    page.get_by_role("menuitem", name=action).click()


def test_it_creates_a_user_gives_a_role_and_a_password_and_disables_them(page, aside, axe):
    sign_in(page, at="/access")
    page.get_by_role("button", name="Create user").click()
    dialog = page.get_by_role("dialog", name="Create user")
    dialog.get_by_label("User name").fill("grace")
    dialog.get_by_label("Password (optional)").fill("short")
    dialog.get_by_role("button", name="Create user").click()
    expect(dialog.get_by_role("alert")).to_contain_text("at least 10 characters")
    dialog.get_by_label("Password (optional)").fill("a long password")
    assert axe(page) == []
    dialog.get_by_role("button", name="Create user").click()
    expect(row(page, "grace")).to_contain_text("Active")
    choose(page, "grace", "Grant a role")
    dialog = page.get_by_role("dialog", name="Grant a role to grace")
    dialog.get_by_label("Namespace").fill("vision")
    dialog.get_by_role("button", name="Grant role").click()
    expect(row(page, "grace")).to_contain_text("viewer in vision")
    choose(page, "grace", "Set password")
    dialog = page.get_by_role("dialog", name="Set the password of grace")
    dialog.get_by_label("New password").fill("another long password")
    dialog.get_by_role("button", name="Set password").click()
    expect(dialog).to_have_count(0)
    assert aside(lambda: get_user_model().objects.get(username="grace").check_password("another long password"))
    row(page, "grace").get_by_role("button", name="Remove viewer in vision from grace").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(row(page, "grace")).not_to_contain_text("viewer")
    choose(page, "grace", "Disable")
    page.get_by_role("dialog", name="Disable grace?").get_by_role("button", name="Disable").click()
    expect(row(page, "grace")).to_contain_text("Disabled")
    assert not aside(get_user_model().objects.get, username="grace").is_active
    verbs = aside(lambda: set(AuditEntry.objects.filter(actor="ada").values_list("verb", flat=True)))
    assert {"create", "grant", "set-password", "revoke", "disable"} <= verbs
    page.get_by_role("link", name="grace").click()
    expect(page.get_by_role("table", name="Audit")).to_contain_text("disable")


def test_it_keeps_the_last_fleet_admin(page, aside):
    sign_in(page, at="/access")
    page.get_by_role("button", name="Actions for ada").click()
    item = page.get_by_role("menuitem", name="Disable")
    expect(item).to_have_attribute("aria-disabled", "true")
    expect(item).to_contain_text("This is the last active fleet admin")
    page.keyboard.press("Escape")
    aside(person, "eve", (Grant.Role.FLEET_ADMIN, ""))
    page.reload()
    page.get_by_role("button", name="Actions for ada").click()
    expect(page.get_by_role("menuitem", name="Disable")).to_have_attribute("aria-disabled", "false")
    page.keyboard.press("Escape")
    aside(lambda: get_user_model().objects.filter(username="ada").update(is_superuser=False, is_active=True))
    aside(
        lambda: Grant.objects.create(
            user=get_user_model().objects.get(username="ada"), role="fleet-admin", namespace=""
        )
    )
    aside(lambda: get_user_model().objects.filter(username="eve").update(is_active=False))
    page.reload()
    role = row(page, "ada").get_by_role("button", name="Remove fleet-admin from ada")
    expect(role).to_have_attribute("aria-disabled", "true")
    expect(role).to_have_attribute("title", "This is the last active fleet admin")


def test_it_names_and_removes_a_team_lead_by_keyboard(page, aside):
    aside(start_tree)
    aside(person, "lea", (Grant.Role.VIEWER, ""))
    sign_in(page, at="/access")
    leads = page.get_by_role("region", name="Team leads")
    path = leads.get_by_label("Leads").locator("option").nth(1).text_content()
    leads.get_by_label("User name").focus()
    page.keyboard.type("lea")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(leads.get_by_role("table")).to_contain_text(path)
    assert aside(lambda: QuotaGrant.objects.get().path) == path
    leads.get_by_role("button", name=f"Remove lea as lead of {path}").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_role("button", name="Remove")).to_be_focused()
    page.keyboard.press("Enter")
    expect(leads).to_contain_text("No team leads")
    assert not aside(QuotaGrant.objects.exists)


def test_it_asks_before_a_token_is_revoked_and_copies_a_new_one(page):
    sign_in(page, at="/access")
    tokens = page.get_by_role("region", name="Your tokens")
    tokens.get_by_label("Token").fill("ci")
    tokens.get_by_role("button", name="Create a token").click()
    expect(tokens.get_by_role("button", name="Copy")).to_be_visible()
    tokens.get_by_role("button", name="Revoke ci").click()
    page.get_by_role("dialog", name="Revoke ci?").get_by_role("button", name="Cancel").click()
    expect(tokens.get_by_role("button", name="Revoke ci")).to_be_visible()
    tokens.get_by_role("button", name="Revoke ci").click()
    page.get_by_role("dialog", name="Revoke ci?").get_by_role("button", name="Revoke").click()
    expect(tokens).to_contain_text("revoked")
