"""Values over time as charts: read with the eye, with the keyboard, and as a table; in their four states."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from fleet.models import Cluster
from jobs.services.series import recording
from quotas.services import trees
from tests.console.builders import NOON, bounds, sign_in
from tests.quotas.core.builders import manifest
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
ANSWERS = """const send = window.fetch;
window.waiting = [];
window.fetch = (request, options) => {
  const { pathname } = new URL(request.url ?? request, location.href);
  if (!pathname.startsWith("/api/v1/series/") || window.mended) return send(request, options);
  return new Promise((resolve) => window.waiting.push(resolve)).then(
    () => Response.json({ title: "Not now", detail: "not now" }, { status: 422 }),
  );
};"""
"""Requests stay without an answer until the test refuses them; what is asked then is answered."""
REFUSE = """new Promise((done) => {
  const look = () => (window.waiting.length > 1 ? done() : setTimeout(look, 20));
  look();
}).then(() => {
  window.mended = true;
  window.waiting.forEach((refuse) => refuse());
})"""


def record(*ago_s: float) -> None:
    recorder, now = recording.Recorder(), timezone.now()
    for each in ago_s:
        recorder.run(now - timedelta(seconds=each))


def record_an_outage() -> None:
    """For some minutes north was out of reach."""
    cluster = Cluster.objects.filter(name="north")
    record(900, 890, 880)
    cluster.update(state=Cluster.State.UNKNOWN)
    record(600, 590)
    cluster.update(state=Cluster.State.READY)
    record(300, 290, 30, 20)


def chart_of(page: Page, title: str):
    return page.get_by_role("region", name=title, exact=True)


def test_the_fleet_shows_its_gpus_over_time_and_when_a_cluster_was_lost(world, page, aside, north, axe):
    aside(world.member, "south", 2)
    aside(record_an_outage)
    sign_in(page)
    panel = chart_of(page, "GPUs over time")
    expect(panel).to_contain_text("free 6")
    expect(panel.get_by_role("list", name="Incidents")).to_contain_text("north lost")
    slider = panel.get_by_role("slider")
    slider.focus()
    texts = {slider.get_attribute("aria-valuetext") or ""}
    while slider.get_attribute("aria-valuenow") != "0":
        slider.press("ArrowLeft")
        texts.add(slider.get_attribute("aria-valuetext") or "")
    [lost] = [each for each in texts if "north lost" in each]
    [back] = [each for each in texts if "north back" in each]
    assert lost.endswith("used 0, held 0, free 2, not reachable 4"), lost
    assert back.endswith("used 0, held 0, free 6, not reachable 0"), back
    slider.press("End")
    expect(slider).to_have_attribute("aria-valuenow", str(int(slider.get_attribute("aria-valuemax"))))
    panel.get_by_role("button", name="Show as table").click()
    row = panel.get_by_role("row").filter(has_text="north lost")
    expect(row.get_by_role("cell")).to_have_text(["0", "0", "2", "4", "north lost"])
    assert axe(page) == []
    panel.get_by_text("24 h", exact=True).click()
    expect(page).to_have_url(re.compile("range=24h"))
    expect(panel).to_contain_text("free 6")
    page.reload()
    expect(panel.get_by_role("radio", name="24 h")).to_be_checked()


def test_a_queue_shows_what_it_used_borrowed_and_lent_beside_its_bounds(world, page, aside, north, axe):
    vision = {"name": "vision", "namespaces": ["default"], **bounds(2, 8)}
    aside(trees.apply, manifest({"name": "root", "children": [vision], **bounds(8, 8)}), by="grace", now=NOON)
    aside(world.apply, pytorch_job("llama", duration="10h"))
    aside(world.expect, "llama", "Running", on="north")
    aside(record, 300, 290, 20)
    sign_in(page, at="/quotas")
    panel = chart_of(page, "Use over time")
    expect(panel).to_contain_text("used within min 3")
    picker = panel.get_by_role("combobox", name="Queue")
    picker.click()
    page.get_by_role("option", name="root/vision", exact=True).click()
    expect(page).to_have_url(re.compile("of=root%2Fvision"))
    expect(panel.get_by_role("slider")).to_have_attribute(
        "aria-valuetext", re.compile("used within min 2, borrowed 1, lent 0, min 2, max 8$")
    )
    jobs = chart_of(page, "Jobs over time")
    expect(jobs.get_by_role("img", name=re.compile("^Attempt 1 on north, GPUs: 3; placed .* ended –$"))).to_be_visible()
    jobs.get_by_role("button", name="Show as table").click()
    expect(jobs.get_by_role("row").nth(1)).to_contain_text("default/llama")
    hours = chart_of(page, "GPU-hours")
    row = hours.get_by_role("row").filter(has_text="default")
    expect(row.get_by_role("cell").nth(3)).to_have_text("1")
    hours.get_by_text("GPU model", exact=True).click()
    expect(hours.get_by_role("row").nth(1)).to_contain_text("model not known")
    link = hours.get_by_role("link", name="CSV").get_attribute("href")
    assert page.request.get(str(link)).text().startswith("model,used_gpu_hours,")
    assert axe(page) == []


def test_it_shows_what_is_recorded_while_one_looks(world, page, aside, north):
    aside(record, 300, 290, 20)
    sign_in(page)
    panel = chart_of(page, "GPUs over time")
    expect(panel).to_contain_text("free 4")
    aside(world.member, "south", 2)
    aside(record, 10, 0)
    expect(panel).to_contain_text("free 6")


def test_a_chart_is_on_its_way_or_failed_or_has_nothing_to_show(page, north, spoiled, axe):
    page.add_init_script(ANSWERS)
    sign_in(page)
    panel = chart_of(page, "GPUs over time")
    expect(panel.locator(".mantine-Skeleton-root")).to_be_visible()
    page.evaluate(REFUSE)
    expect(panel.get_by_role("alert")).to_contain_text("not now", ignore_case=True)
    assert axe(page) == []
    panel.get_by_role("button", name="Try again").click()
    expect(panel.get_by_role("heading", name="Nothing recorded in this period")).to_be_visible()
    assert axe(page) == []


@pytest.mark.parametrize(("language", "word"), [("zh-CN", "以表格显示"), ("id", "Tampilkan sebagai tabel")])
def test_a_chart_is_read_in_every_language_and_in_the_dark(page, aside, north, axe, language, word):
    aside(record, 300, 290, 20)
    page.add_init_script(
        f"localStorage.setItem('convoy-language', '{language}');"
        "localStorage.setItem('mantine-color-scheme-value', 'dark');"
    )
    sign_in(page, at="/fleet")
    page.get_by_role("button", name=word).click()
    expect(page.get_by_role("table")).to_be_visible()
    assert axe(page) == []
