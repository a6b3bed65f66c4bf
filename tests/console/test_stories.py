"""Stories told through the console: signing in, watching a job run, learning why one waits, steering it."""

import pytest
from playwright.sync_api import expect

from tests.console.builders import go, press_despite, sign_in
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_shows_the_fleet_and_fills_it_live(world, page, aside, north):
    sign_in(page)
    card = page.get_by_role("article", name="north")
    expect(card).to_contain_text("of 4 GPUs taken")
    aside(world.apply, pytorch_job("llama", duration="10h"))
    expect(card.get_by_role("img", name="GPUs of north: 3 used")).to_be_visible()


def test_it_follows_a_job_and_suspends_it(world, page, aside, north):
    sign_in(page)
    page.get_by_role("link", name="Jobs", exact=True).click()
    expect(page.get_by_role("heading", name="No jobs yet")).to_be_visible()
    aside(world.apply, pytorch_job("llama", duration="10h"))
    row = page.get_by_role("row").filter(has_text="llama")
    expect(row).to_contain_text("Running")
    expect(row).to_contain_text("north")
    row.get_by_role("button", name="Actions for llama").click()
    page.get_by_role("menuitem", name="Suspend", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Suspend").click()
    expect(row).to_contain_text("Suspended")


def test_it_says_cluster_by_cluster_why_a_gang_fits_nowhere(world, page, aside, north):
    sign_in(page)
    aside(world.apply, pytorch_job("giant", gpus=8))
    go(page, "/jobs?state=Queued")
    page.get_by_role("link", name="giant").click()
    verdict = page.get_by_role("table", name="Cluster by cluster").get_by_role("row").filter(has_text="north")
    expect(verdict).to_contain_text("Does not fit")
    expect(verdict).to_contain_text("20 GPU")


def test_it_asks_for_the_password_in_place_when_the_session_ends(page, aside, north):
    sign_in(page)
    page.context.clear_cookies(name="sessionid")
    press_despite(page.get_by_role("link", name="Jobs", exact=True))
    dialog = page.get_by_role("dialog", name="Your session has ended")
    expect(dialog).to_be_visible()
