"""A cluster that is gone: what the numbers of the fleet say then, which incident is named, and what is shown as stale."""

import re
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from simulator.fault_parser import Fault
from tests.console.builders import open_job, sign_in
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
STALE = re.compile(r"north does not answer\. Shown as last seen \d+s ago")


def test_it_counts_nothing_on_a_silent_cluster_as_free_and_names_the_incident(world, page, aside, north, settings, axe):
    settings.CONVOY_MEMBERS = replace(settings.CONVOY_MEMBERS, heartbeat_grace_s=0.5)
    aside(world.member, "south", 2)
    sign_in(page)
    aside(world.apply, pytorch_job("llama", duration="10h"))
    aside(world.expect, "llama", "Running", on="north")
    totals = page.get_by_role("region", name="The fleet in numbers")
    expect(totals.get_by_role("img", name="GPUs of Fleet: 3 used, 0 held, 3 free, 6 in all")).to_be_visible()
    aside(world.members["north"].disturb, Fault("away"))
    expect(totals).to_contain_text("2 of 6 GPUs reachable; 4 on north, silent for")
    expect(totals.get_by_role("img", name="GPUs of Fleet: 0 used, 0 held, 2 free, 2 in all")).to_be_visible()
    expect(totals).to_contain_text("1/ 2")
    incident = page.get_by_role("region", name="Clusters that cannot be used now")
    expect(incident).to_contain_text("north does not answer")
    main = page.get_by_role("main")
    for raw in ("Errno", "RemoteDisconnected", "('", "urllib3"):
        expect(main.get_by_text(raw).filter(visible=True)).to_have_count(0)
    incident.get_by_text("What the network said").click()
    expect(incident.locator("code").first).to_be_visible()
    expect(page.get_by_role("article", name="north")).to_contain_text("3 of 4 GPUs were taken when last seen")
    assert axe(page) == []
    open_job(page, "llama")
    expect(page.get_by_role("main")).to_contain_text("The pods are shown as last seen")
    expect(page.get_by_role("row").filter(has_text="llama-master-0")).to_contain_text("(stale)")
    page.get_by_role("main").get_by_role("link", name="north").first.click()
    for name in ("GPU map", "Nodes"):
        expect(page.get_by_role("region", name=name)).to_contain_text(STALE)
    expect(page.get_by_role("region", name="Nodes").get_by_role("row").nth(1)).to_contain_text("Unknown")
    expect(page.get_by_role("region", name="GPU map")).not_to_contain_text("Room")
    assert axe(page) == []
    aside(world.members["north"].disturb, Fault("back"))
    expect(page.get_by_text(STALE)).to_have_count(0)
    expect(incident).to_have_count(0)
