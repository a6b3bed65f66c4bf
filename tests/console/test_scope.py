"""The part of the fleet that is looked at: chosen once, kept in the address and by every link, respected by every list."""

import re

import pytest
from playwright.sync_api import expect

from tests.console.builders import press_in_turn, sign_in
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


def choose(page, what: str, value: str) -> None:
    page.get_by_role("combobox", name=what, exact=True).click()
    page.get_by_role("option", name=value, exact=True).click()


@pytest.fixture
def two(world, aside, north):
    """A job that runs on north, one of another namespace that waits, and an empty cluster beside them."""
    aside(world.apply, pytorch_job("llama", duration="10h"))
    aside(world.expect, "llama", "Running", on="north")
    aside(world.apply, pytorch_job("giant", gpus=8).replace("metadata:", "metadata:\n  namespace: vision", 1))
    aside(world.member, "south", 4)


def test_it_keeps_the_scope_from_page_to_page(page, two, axe):
    sign_in(page)
    choose(page, "Cluster", "south")
    expect(page.get_by_role("article")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"/fleet\?cluster=south$"))
    assert axe(page) == []
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Jobs").click()
    expect(page).to_have_url(re.compile(r"/jobs\?cluster=south$"))
    expect(page.get_by_text("No job matches")).to_be_visible()
    press_in_turn(page, "g", "e")
    expect(page).to_have_url(re.compile(r"/events\?cluster=south$"))
    expect(page.get_by_role("row").filter(has_text="llama")).to_have_count(0)
    page.get_by_role("button", name="Show the whole fleet").click()
    expect(page.get_by_role("row").filter(has_text="llama").first).to_be_visible()
    expect(page).to_have_url(re.compile(r"/events$"))


def test_it_narrows_the_fleet_home_to_a_namespace(page, two):
    sign_in(page)
    waiting = page.get_by_role("link").filter(has_text="Jobs queued")
    expect(waiting).to_contain_text("1")
    choose(page, "Namespace", "default")
    expect(waiting).to_contain_text("0")
    expect(page.get_by_text("No job waits.")).to_be_visible()
    page.get_by_role("link").filter(has_text="Jobs running").click()
    expect(page).to_have_url(re.compile(r"/jobs\?state=Running&namespace=default$"))
    expect(page.get_by_role("row").filter(has_text="llama")).to_be_visible()


def test_it_goes_on_with_the_scope_of_a_shared_address(page, two):
    sign_in(page, at="/jobs?namespace=vision&state=Queued")
    page.get_by_role("link", name="giant").click()
    page.get_by_role("tab", name="Events").click()
    expect(page).to_have_url(re.compile(r"namespace=vision"))
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Incidents").click()
    expect(page).to_have_url(re.compile(r"/incidents\?namespace=vision$"))
