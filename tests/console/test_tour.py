"""The tour: opens by itself on the demo fleet, five pages, put away and taken up again, by keyboard, in three languages."""

import re
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from simulator import fault_parser
from simulator.faults_control import ControlServer
from tests.console.builders import sign_in
from tests.support.world import POLICY, pytorch_job

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
    steps |= {"Who is promised what": "/quotas", "Break a cluster and watch": "/fleet"}
    for title, address in steps.items():
        expect(step(page, title)).to_be_visible()
        expect(page).to_have_url(re.compile(address + "$"))
        expect(step(page, title).get_by_role("heading")).to_be_focused()
        assert axe(page) == []
        page.get_by_role("button", name="Next" if title[0] != "B" else "Done", exact=True).press("Enter")
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


@pytest.fixture
def simulator(world, demo, settings, tmp_path_factory):
    """The control socket of the simulator that plays the demo's clusters."""
    home = tmp_path_factory.mktemp("simulator")
    settings.CONVOY_SIMULATOR = str(home)
    settings.CONVOY_MEMBERS = replace(settings.CONVOY_MEMBERS, heartbeat_grace_s=0.5)
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, cluster_toleration_s=0.5)
    for name in world.members:
        (home / f"{name}.kubeconfig").touch()
    control = ControlServer(home, lambda name, words: world.members[name].disturb(fault_parser.parse(words)))
    control.start()
    yield
    control.stop()


def test_it_breaks_a_simulated_cluster_and_ends_with_a_moved_job(world, page, aside, simulator, axe):
    aside(world.apply, POLICY, pytorch_job("llama", workers=0, duration="10h"))
    aside(world.expect, "llama", "Running")
    sign_in(page)
    for _ in range(4):
        page.get_by_role("button", name="Next", exact=True).click()
    story = step(page, "Break a cluster and watch")
    story.get_by_role("button", name=re.compile("^Break ")).click()
    expect(story.get_by_role("link").filter(has_text="default/llama runs on")).to_be_visible(timeout=60_000)
    assert axe(page) == []
    story.get_by_role("button", name=re.compile("^Bring ")).click()
    expect(page.get_by_role("region", name="Clusters that cannot be used now")).to_have_count(0)


def test_it_gives_the_example_a_name_that_is_free(world, page, aside, demo):
    text = pytorch_job("pytorch-test", workers=0, duration="10h")
    aside(world.apply, POLICY, text)
    sign_in(page, at="/submit")
    expect(page.get_by_role("textbox", name="Manifest")).to_contain_text("name: pytorch-test-2")
    expect(page.get_by_role("region", name="What would happen")).to_contain_text("pytorch-test-2 would start on")


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
