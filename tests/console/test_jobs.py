"""Stories of the jobs' pages: one that runs is followed, one that waits explains itself and starts when room is made."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import PATIENCE_MS
from tests.console.test_stories import north, sign_in
from tests.support.world import pytorch_job

__all__ = ["north"]

pytestmark = pytest.mark.django_db(transaction=True)
expect.set_options(timeout=PATIENCE_MS)


def submit(page: Page, manifest: str) -> None:
    """By REST, from within the signed-in browser."""
    token = next(each["value"] for each in page.context.cookies() if each["name"] == "csrftoken")
    headers = {"Content-Type": "application/yaml", "X-CSRFToken": token, "Referer": page.url}
    assert page.request.post("/api/v1/apply/", data=manifest, headers=headers).ok


def open_job(page: Page, name: str) -> None:
    page.goto("/jobs")
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()


def tab(page: Page, name: str) -> Any:
    page.get_by_role("tab", name=name).click()
    return page.get_by_role("tabpanel", name=name)


def test_it_follows_a_job_from_submitted_to_running(world, page, north):
    sign_in(page)
    submit(page, pytorch_job("llama", duration="10h"))
    open_job(page, "llama")
    bar = page.get_by_role("region", name="From submitted to done")
    expect(bar).to_contain_text("Running")
    placed = tab(page, "Placement").get_by_role("row").filter(has_text="north")
    expect(placed).to_contain_text("Chosen")
    expect(tab(page, "YAML").locator("pre")).to_contain_text("kind: PyTorchJob")
    page.get_by_text("What the member changed").click()
    expect(page.locator("pre [data-mark='+']").first).to_be_visible()


def test_it_explains_what_a_job_waits_for_and_starts_it_when_room_is_made(world, page, aside, north):
    sign_in(page)
    aside(world.apply, pytorch_job("first", duration="10h"))
    aside(world.expect, "first", "Running")
    aside(world.apply, pytorch_job("second", duration="10h"))
    open_job(page, "second")
    why = page.get_by_role("region", name="Why it is not running")
    expect(why).to_contain_text("0/1 clusters fit: north")
    expect(why.get_by_role("listitem").filter(has_text="Placement")).to_have_attribute("aria-current", "step")
    expect(why).to_contain_text("What would help")
    aside(world.delete, "first")
    expect(page.get_by_role("main").get_by_text("Running").first).to_be_visible()
    expect(why).not_to_be_attached()


def test_it_reads_the_log_of_a_role_while_it_is_written(world, page, aside, north):
    sign_in(page)
    aside(world.apply, pytorch_job("llama", duration="10h"))
    aside(world.expect, "llama", "Running")
    open_job(page, "llama")
    log = tab(page, "Logs").get_by_role("log")
    expect(log).not_to_be_empty()
    page.get_by_label("Find in the log").fill("no line has this")
    expect(page.get_by_text("0 lines")).to_be_visible()
