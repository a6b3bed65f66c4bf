"""A cluster dies before somebody's eyes: the fleet says so, its jobs move, and the incident is told as one story."""

from dataclasses import replace

import pytest
from playwright.sync_api import expect

from fleet.models import Event
from tests.console.builders import settled, sign_in
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_follows_the_moves_when_a_cluster_dies(world, page, aside, north, still, settings):
    aside(world.apply, pytorch_job("llama", duration="10h"))
    aside(world.expect, "llama", "Running", on="north")
    aside(world.member, "south", 4)
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, cluster_toleration_s=0.1)
    sign_in(page)
    lost, other = page.get_by_role("article", name="north"), page.get_by_role("article", name="south")
    expect(lost.get_by_role("img", name="GPUs of north: 3 used")).to_be_visible()
    expect(page.get_by_text("No job is moving")).to_be_visible()
    settled(page)
    with still(page):
        aside(world.members["north"].stop)
        expect(lost).to_contain_text("Unknown")
        aside(world.expect, "llama", "Running", on="south")
        expect(other.get_by_role("img", name="GPUs of south: 3 used")).to_be_visible()
    page.get_by_role("link", name="Incidents", exact=True).click()
    page.get_by_role("link", name="north does not answer").click()
    expect(page.get_by_role("heading", name="north does not answer", level=1)).to_be_visible()
    story = page.get_by_role("region", name="Timeline")
    for step in ("First failed check of north", "ends attempt 1 on north", "runs again on south"):
        expect(story).to_contain_text(step)
    address = page.get_by_role("link", name="Export post-mortem").get_attribute("href")
    assert address is not None
    assert "default/llama runs again on south" in page.request.get(address).text()
    story.get_by_role("link", name="default/llama").first.click()
    expect(page.get_by_role("heading", name="llama", level=1)).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("south")
    assert aside(Event.objects.filter(reason="Moving").count) == 1
