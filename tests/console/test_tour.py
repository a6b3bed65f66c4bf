"""The tour: opens by itself on the demo fleet, five pages, put away and taken up again, by keyboard, in three languages."""

import re

import pytest
from playwright.sync_api import expect

from tests.console.test_stories import sign_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def demo(world, page, aside):
    for name in ("north", "south", "spot"):
        aside(world.member, name, 4)


def step(page, title: str):
    return page.get_by_role("region", name=title)


def test_it_leads_through_five_pages_by_keyboard(page, demo, axe):
    sign_in(page)
    steps = {"The fleet at a glance": "/fleet", "Submit a job": "/submit", "Why does it wait?": r"/jobs\?state=Queued"}
    steps |= {"Who is promised what": "/quotas", "Kill a cluster and watch": "/fleet/north"}
    for title, address in steps.items():
        expect(step(page, title)).to_be_visible()
        expect(page).to_have_url(re.compile(address + "$"))
        expect(step(page, title).get_by_role("heading")).to_be_focused()
        assert axe(page) == []
        page.get_by_role("button", name="Next" if title[0] != "K" else "Done", exact=True).press("Enter")
    expect(page.get_by_text("Tour · step")).to_have_count(0)
    page.goto("/fleet")
    expect(page.get_by_role("article", name="north")).to_be_visible()
    expect(page.get_by_text("Tour · step")).to_have_count(0)


def test_it_is_put_away_and_taken_up_where_it_was(page, demo):
    sign_in(page)
    page.get_by_role("button", name="Next", exact=True).click()
    expect(step(page, "Submit a job")).to_be_visible()
    page.keyboard.press("Escape")
    expect(step(page, "Submit a job")).to_have_count(0)
    page.reload()
    page.get_by_role("button", name="Help", exact=True).click()
    page.get_by_role("menuitem", name="Go on with the tour").click()
    expect(step(page, "Submit a job")).to_be_visible()
    expect(page.get_by_text("Tour · step 2 of 5")).to_be_visible()


def test_it_names_the_command_that_kills_a_cluster(page, demo):
    sign_in(page)
    for _ in range(4):
        page.get_by_role("button", name="Next", exact=True).click()
    expect(
        page.locator("code").filter(has_text="fleet.simulator.fault --home .convoy/simulator north away")
    ).to_be_visible()


@pytest.mark.parametrize(
    ("language", "title"), [("简体中文", "机群一览"), ("Bahasa Indonesia", "Armada dalam sekali pandang")]
)
def test_it_speaks_the_language_of_its_reader(page, demo, language, title):
    sign_in(page)
    page.get_by_role("button", name="Language").click()
    page.get_by_role("menuitemradio", name=language).click()
    expect(step(page, title)).to_be_visible()


def test_it_leaves_a_fleet_alone_that_is_not_the_demo(world, page, aside):
    aside(world.member, "north", 4)
    sign_in(page)
    expect(page.get_by_role("article", name="north")).to_be_visible()
    expect(page.get_by_text("Tour · step")).to_have_count(0)
