"""The frame: keys and their list, how live the page is, numbers that lead to what they count, copying without a clipboard."""

import re
from datetime import datetime, timedelta

import pytest
from playwright.sync_api import expect

from tests.console.builders import go, is_explained, press_in_turn, sign_in
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def busy(world, aside, north):
    aside(world.apply, pytorch_job("llama", duration="10h"))
    aside(world.expect, "llama", "Running", on="north")
    aside(world.apply, pytorch_job("giant", gpus=8))
    aside(world.until, lambda: is_explained("giant"), "giant has a reason")


def test_it_lists_the_keys_that_work(page, north, axe):
    sign_in(page)
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keys).to_contain_text("Go to Incidents")
    assert axe(page) == []
    page.keyboard.press("Escape")
    expect(keys).to_have_count(0)
    press_in_turn(page, "g", "o")
    expect(page).to_have_url(re.compile("/incidents$"))


def test_it_holds_the_page_still_and_says_how_old_it_is(world, page, aside, north):
    sign_in(page)
    dot = page.get_by_role("button", name=re.compile("^Live"))
    expect(dot).to_be_visible()
    page.keyboard.press("p")
    expect(page.get_by_role("button", name=re.compile("^Paused"))).to_be_visible()
    aside(world.apply, pytorch_job("llama", duration="10h"))
    held = page.get_by_role("button", name=re.compile(r"^Paused last change .* ago"))
    expect(held).to_be_visible()
    tile = page.get_by_role("link").filter(has_text="Jobs running")
    expect(tile).to_contain_text("0")
    held.click()
    expect(tile).to_contain_text("1")


LONGEST = {
    "en": ("Live", "59m 59s ago", "23h 59m ago"),
    "zh-CN": ("实时", "59分钟 59秒前", "23小时 59分钟前"),
    "id": ("Langsung", "59 mnt 59 dtk lalu", "23 j 59 mnt lalu"),
}


def strip(page) -> list[list[float]]:
    """Where each part of the top bar begins and how wide it is."""
    return page.locator("button[data-status]").evaluate(
        "({ parentElement }) => [...parentElement.children].map((part) => part.getBoundingClientRect())"
        ".map(({ x, width }) => [x, width])"
    )


@pytest.mark.parametrize("language", LONGEST)
def test_it_moves_nothing_when_the_first_change_arrives_nor_as_it_grows_old(page, north, still, language, spoiled):
    live, *ages = LONGEST[language]
    lines = []
    page.route_web_socket("**/ws/changes/", lambda line: lines.append(line))
    sign_in(page)
    page.evaluate("language => localStorage.setItem('convoy-language', language)", language)
    page.goto("/fleet")
    dot = page.locator("button[data-status]")
    expect(dot).to_contain_text(live)
    page.wait_for_load_state("networkidle")
    # The menus are fetched after the frame.
    for part in page.locator("button[data-status] ~ *").all():
        expect(part).to_be_visible()
    before = strip(page)
    assert len(before) == 4
    with still(page):
        lines[-1].send(
            '{"kind": "Cluster", "namespace": "", "name": "north", "id": "1", "version": 1, "action": "modified"}'
        )
        changed = dot.locator("time")
        expect(changed).to_be_visible()
        assert strip(page) == before
        seen = datetime.fromisoformat(changed.get_attribute("datetime"))
        for age, told in zip((3_599, 86_399), ages, strict=True):
            page.clock.set_fixed_time(seen + timedelta(seconds=age, milliseconds=100))
            expect(changed).to_have_text(told, timeout=30_000)
            assert strip(page) == before


LINKS = {
    "Jobs running": (r"/jobs\?state=Running$", "llama"),
    "Jobs queued": (r"/jobs\?state=Queued$", "giant"),
    "Clusters ready": (r"/fleet\?view=table$", "north"),
}


def test_it_leads_from_every_number_of_the_fleet_to_what_it_counts(page, busy):
    sign_in(page)
    for tile, (address, shown) in LINKS.items():
        go(page, "/fleet")
        page.get_by_role("link").filter(has_text=tile).click()
        expect(page).to_have_url(re.compile(address))
        expect(page.get_by_role("row").filter(has_text=shown)).to_be_visible()


def test_it_leads_from_a_reason_to_the_jobs_that_wait_for_it(page, busy):
    sign_in(page)
    page.locator("section").filter(has=page.get_by_role("heading", name="Why jobs wait")).get_by_role(
        "link"
    ).first.click()
    expect(page).to_have_url(re.compile(r"/jobs\?state=Queued&reason=\w+$"))
    expect(page.get_by_role("row").filter(has_text="giant")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="llama")).to_have_count(0)
    page.get_by_role("button", name=re.compile("^Reason: ")).click()
    expect(page).to_have_url(re.compile(r"/jobs\?state=Queued$"))


def test_it_leads_from_a_policy_to_the_jobs_it_claims(page, busy):
    sign_in(page, at="/policies")
    page.get_by_role("row").filter(has_text="example-policy").get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"/jobs\?policy=example-policy"))
    expect(page.get_by_role("row").filter(has_text="llama")).to_be_visible()
    page.goto("/jobs?policy=another")
    expect(page.get_by_text("No job matches these filters")).to_be_visible()


def test_it_says_which_jobs_a_policy_would_claim_as_it_is_edited(page, busy):
    sign_in(page, at="/policies")
    page.get_by_role("button", name="example-policy").click()
    page.get_by_role("dialog").get_by_role("button", name="Edit").click()
    outlook = page.get_by_role("region", name="What would happen")
    expect(outlook).to_contain_text("example-policy would claim 2 jobs")
    expect(outlook.get_by_role("listitem")).to_have_text(["default/llama", "default/giant"])
    go(page, "/policies")
    page.get_by_role("button", name="New policy").click()
    expect(outlook).to_contain_text("new-policy would claim no existing job")


def test_it_copies_where_the_browser_has_no_clipboard(page, north):
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    sign_in(page)
    page.reload()
    page.get_by_role("button", name="Copy as a command").click()
    page.get_by_role("menuitem").filter(has_text="convoy get clusters").click()
    expect(page.get_by_role("menuitem").filter(has_text="Copied")).to_contain_text("convoy get clusters")
    page.keyboard.press("Escape")
    go(page, "/audit")
    page.get_by_role("textbox", name="Who", exact=True).press("Control+v")
    expect(page.get_by_role("textbox", name="Who", exact=True)).to_have_value("convoy get clusters")


def test_it_can_be_used_on_a_telephone(page, busy, axe):
    sign_in(page)
    page.set_viewport_size({"width": 390, "height": 844})
    rooms = page.get_by_role("navigation")
    expect(rooms.get_by_role("link")).to_have_count(0)
    assert page.get_by_role("main").bounding_box()["y"] <= 90
    for key, room in (("Enter", "Jobs"), ("Space", "Quotas"), ("Enter", "Fleet")):
        page.get_by_role("button", name="Menu").press(key)
        link = rooms.get_by_role("link", name=room)
        link.click()
        expect(page.get_by_role("heading", name=room, level=1)).to_be_visible()
        expect(link).to_be_hidden()
        assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_role("button", name="Menu").click()
    expect(rooms.get_by_role("link")).to_have_count(13)
    assert axe(page) == []
    page.keyboard.press("Escape")
    expect(rooms.get_by_role("link")).to_have_count(0)
    for path in ("/access", "/fleet/north"):
        go(page, path)
        expect(page.get_by_role("table").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 390, path
    for name in ("Search", "Live", "ada"):
        expect(page.get_by_role("button", name=name).first).to_be_in_viewport(ratio=1)
