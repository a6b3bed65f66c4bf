"""Every page in its four states: on its way, nothing there, failed with another try, ready; and when the server goes away."""

from contextlib import ExitStack, suppress

import pytest
from playwright.sync_api import Page, TimeoutError, expect

from tests.console.builders import ANSWERS, PATIENCE_MS, answers, go, sign_in
from tests.support.people import person
from tests.support.web import served
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
ROUTES = {
    "/fleet": "clusters/", "/fleet/north": "nodes/", "/jobs": "jobs/", "/jobs/ID": "jobs/",
    "/quotas": "quota/tree/", "/policies": "policies/", "/incidents": "incidents/", "/events": "events/",
    "/audit": "audit/", "/access": "users/", "/system": "system/", "/fleet/north/drain": "whatif/",
    "/whatif#cluster=north": "whatif/", "/accounting": "accounting/", "/reliability": "goodput/",
}  # fmt: skip
"""Pages that read, and what of the API each cannot do without; joining and submitting only send."""
EMPTY = {
    "/fleet": "No cluster has joined yet", "/jobs": "No jobs yet", "/quotas": "There is no quota tree",
    "/policies": "No policies yet", "/incidents": "No incidents", "/events": "No event matches",
}  # fmt: skip
"""The audit is never empty for its reader: their own sign-in is in it."""
ENDLESS_ANIMATIONS = """() => document.getAnimations()
  .filter(({ effect }) => effect.getComputedTiming().iterations === Infinity).length"""


def test_it_says_what_to_do_where_there_is_nothing(page):
    sign_in(page)
    for address, title in EMPTY.items():
        go(page, address)
        expect(page.get_by_role("heading", name=title)).to_be_visible()


def test_it_shows_where_things_will_be_while_they_are_on_their_way(world, page, aside, north):
    page.add_init_script(ANSWERS)
    sign_in(page)
    for address, asked in addresses(world, page, aside):
        answers(page, asked)
        page.goto(address)
        expect(page.get_by_role("main").locator("[aria-busy=true], .mantine-Skeleton-root").first).to_be_visible()
        assert page.evaluate(ENDLESS_ANIMATIONS) == 0, f"{address} flickers for whoever asked for reduced motion"
    answers(page)


def test_it_offers_another_try_where_something_failed(world, page, aside, north):
    page.add_init_script(ANSWERS)
    sign_in(page)
    for address, asked in addresses(world, page, aside):
        answers(page, asked, refused=True)
        page.goto(address)
        failed = page.get_by_role("main").get_by_role("alert")
        expect(failed.first).to_contain_text("not now", ignore_case=True)
        answers(page)
        while failed.get_by_role("button", name="Try again").count():
            with suppress(TimeoutError):  # another button's try may have mended this one between the look and the click
                failed.get_by_role("button", name="Try again").first.click(timeout=1_000)
            page.wait_for_load_state("networkidle")
        expect(failed).to_have_count(0)


def addresses(world, page: Page, aside) -> list[tuple[str, str]]:
    """A job has an address only once it is there."""
    aside(world.apply, pytorch_job("llama", duration="10h"))
    job = aside(world.job, "llama")
    return [(address.replace("ID", str(job.uid)), asked) for address, asked in ROUTES.items()]


def test_it_says_that_the_server_is_away_and_goes_on_when_it_is_back(aside, browser):
    aside(person, "ada", superuser=True)
    with ExitStack() as first:
        port = first.enter_context(served())
        page = browser.new_page(base_url=f"http://127.0.0.1:{port}")
        sign_in(page)
    banner = page.get_by_role("status").filter(has_text="The server does not answer")
    expect(banner).to_be_visible()
    with served(port):
        expect(banner).to_be_hidden(timeout=2 * PATIENCE_MS)
        page.get_by_role("link", name="Jobs", exact=True).click()
        expect(page.get_by_role("heading", name="No jobs yet")).to_be_visible()
