"""The fleet through the console: clusters join and are lost, jobs move, and every page opens without a word of complaint."""

import re
from dataclasses import replace

import pytest
import yaml
from playwright.sync_api import expect

from fleet.models import Cluster, Node
from simulator.controller_manager import Shape
from simulator.member import SimulatedMember
from tests.console.builders import go, settled, sign_in
from tests.support.people import person
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
PAGES = {
    "/fleet": "Fleet", "/fleet/north": "north", "/fleet/north/drain": "Drain north",
    "/whatif": "What if", "/join": "Add a cluster", "/submit": "Submit a job", "/policies": "Policies",
    "/accounting": "Accounting", "/reliability": "Reliability", "/incidents": "Incidents", "/events": "Events",
    "/audit": "Audit", "/access": "Access", "/system": "System",
}  # fmt: skip


@pytest.fixture
def stranger(tmp_path):
    """A member that nobody has joined, and its kubeconfig."""
    member = SimulatedMember("south", tmp_path, Shape((), {}))
    member.start()
    yield yaml.safe_dump(member.kubeconfig())
    member.stop()


def test_it_opens_every_page(page, axe, north):
    sign_in(page)
    for path, title in PAGES.items():
        go(page, path)
        expect(page.get_by_role("heading", name=title, level=1, exact=True)).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
        assert (path, axe(page)) == (path, [])


def test_it_finds_one_of_many_nodes(page, aside, north, axe):
    def more() -> None:
        cluster = Cluster.objects.get(name="north")
        Node.objects.bulk_create(
            Node(cluster=cluster, name=f"extra-{i:03}", ready=i != 7, allocatable={}) for i in range(120)
        )

    aside(more)
    sign_in(page, at="/fleet/north")
    nodes = page.get_by_role("region", name="Nodes")
    expect(nodes.get_by_text(re.compile("^1–50 of 12"))).to_be_visible()
    nodes.get_by_role("button", name="Next page").click()
    expect(nodes.get_by_text("extra-080")).to_be_visible()
    nodes.get_by_role("button", name="State").click()
    expect(nodes.get_by_role("row").nth(1)).to_contain_text("extra-007")
    nodes.get_by_label("Search nodes").fill("extra-11")
    expect(nodes.get_by_role("row")).to_have_count(11)
    assert axe(page) == []
    nodes.get_by_label("Search nodes").fill("nobody")
    expect(nodes.get_by_text("No node is called “nobody”")).to_be_visible()
    page.goto("/fleet/nowhere")
    expect(page.get_by_text("There is no cluster nowhere")).to_be_visible()


def test_it_joins_a_cluster_after_a_bad_kubeconfig(page, aside, north, stranger):
    sign_in(page)
    page.get_by_role("link", name="Add a cluster").click()
    page.get_by_role("textbox", name="Name").fill("south")
    page.get_by_role("textbox", name="Kubeconfig").fill(stranger.replace("https:", "http:"))
    page.get_by_role("button", name="Check the connection").click()
    expect(page.get_by_role("listitem").filter(has_text="The file can be read")).to_contain_text("failed")
    expect(page.get_by_role("button", name="Join the fleet")).to_be_disabled()
    page.get_by_role("textbox", name="Kubeconfig").fill(stranger)
    page.get_by_role("button", name="Check the connection").click()
    expect(page.get_by_role("listitem").filter(has_text="It is not a member yet")).to_contain_text("passed")
    page.get_by_role("button", name="Join the fleet").click()
    expect(page.get_by_role("heading", name="south", level=1)).to_be_visible()
    page.get_by_role("button", name="Detach").click()
    page.get_by_role("dialog", name="Detach south from the fleet?").get_by_role("button", name="Detach").click()
    expect(page.get_by_role("heading", name="Fleet", level=1)).to_be_visible()
    expect(page.get_by_role("article", name="south", exact=True)).to_have_count(0)


def test_it_drains_a_cluster_and_calls_the_move_no_incident(world, page, aside, north, settings):
    aside(world.apply, pytorch_job("llama", duration="10h"))
    aside(world.expect, "llama", "Running", on="north")
    aside(world.member, "south", 4)
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, cluster_toleration_s=0.1)
    sign_in(page, at="/fleet/north")
    expect(page.get_by_role("link", name="default/llama Worker 0")).to_be_visible()
    page.get_by_role("button", name="Drain").click()
    effect = page.get_by_role("region", name="What a drain would do")
    expect(effect).to_contain_text("1 job leaves it.")
    expect(effect.get_by_role("row").filter(has_text="llama")).to_contain_text("Starts on south")
    pace = page.get_by_role("region", name="Pace")
    pace.get_by_role("textbox", name="Jobs per minute").fill("7")
    pace.get_by_role("button", name="Set the pace").click()
    expect(pace).to_contain_text("At most 7 a minute")
    page.get_by_role("button", name="Drain north").click()
    expect(page.get_by_role("region", name="Jobs leaving")).to_be_visible()
    expect(effect).to_have_count(0)
    aside(world.expect, "llama", "Running", on="south")
    expect(page.get_by_role("heading", name="All jobs have left north")).to_be_visible()
    page.get_by_role("link", name="north", exact=True).click()
    expect(page.get_by_role("article", name="north", exact=True)).to_contain_text("Drained")
    page.get_by_role("link", name="Incidents").click()
    expect(page.get_by_role("heading", name="No incidents")).to_be_visible()


def test_it_goes_to_a_job_by_the_palette(world, page, aside, north):
    aside(world.apply, pytorch_job("llama", duration="10h"))
    sign_in(page)
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search pages, clusters and jobs").fill("llam")
    expect(page.get_by_role("option", name="default/llama")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="llama", level=1)).to_be_visible()


def test_it_speaks_chinese_in_the_dark(page, axe, north):
    sign_in(page)
    page.get_by_role("button", name="Language").click()
    page.get_by_role("menuitemradio", name="简体中文").click()
    expect(page.get_by_role("heading", name="按型号的 GPU")).to_be_visible()
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    for path in PAGES:
        go(page, path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        settled(page)
        assert (path, axe(page)) == (path, [])
    page.goto("/submit")
    expect(page.get_by_role("heading", name="提交作业")).to_be_visible()


def test_an_admin_sees_and_changes_how_a_cluster_is_accessed(page, north, axe):
    sign_in(page, at="/fleet/north")
    people = page.get_by_role("group", name="Impersonation")
    expect(people).to_contain_text("Everything reaches the cluster as the fleet’s own account")
    people.get_by_role("button", name="Turn on").click()
    dialog = page.get_by_role("dialog", name="Impersonate users on north?")
    assert axe(page) == []
    dialog.get_by_role("button", name="Turn on").click()
    expect(people).to_contain_text("its own RBAC and audit see who it was")
    tokens = page.get_by_role("group", name="Short-lived tokens")
    expect(tokens).to_contain_text("The credentials it joined with are used")
    tokens.get_by_role("button", name="Turn off").click()
    page.get_by_role("dialog", name="Use the credentials north joined with?").get_by_role(
        "button", name="Turn off"
    ).click()
    expect(tokens.get_by_role("button", name="Turn on")).to_be_visible()
    expect(tokens).to_contain_text("turned off for this cluster", ignore_case=True)
    row = page.get_by_role("row").filter(has=page.get_by_role("button", name=re.compile("^Exclude "))).first
    node = row.locator("td").first.inner_text()
    page.get_by_role("button", name=f"Exclude {node}", exact=True).click()
    page.get_by_role("dialog", name=f"Exclude {node}?").get_by_role("button", name="Exclude").click()
    page.get_by_role("button", name=f"Include {node} again").click()
    expect(page.get_by_role("button", name=f"Exclude {node}", exact=True)).to_be_visible()
    taints = page.get_by_role("region", name="Taints")
    taints.get_by_label("Key").fill("maintenance")
    taints.get_by_role("button", name="Add the taint").click()
    expect(taints.get_by_role("listitem")).to_contain_text("maintenance:NoSchedule")
    taints.get_by_role("button", name="Remove maintenance:NoSchedule").click()
    expect(taints.get_by_role("listitem")).to_have_count(0)


def test_a_viewer_sees_it_and_is_told_why_it_cannot_change_it(page, aside, north):
    aside(person, "vic", ("viewer", "default"))
    sign_in(page, "vic", at="/fleet/north")
    button = page.get_by_role("group", name="Impersonation").get_by_role("button", name="Turn on")
    expect(button).to_have_attribute("aria-disabled", "true")
    expect(button).to_have_attribute("aria-description", re.compile("."))
