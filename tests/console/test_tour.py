"""The tour: opens by itself on the demo fleet, six steps, put away and taken up again, by keyboard, in three languages."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from fleet.models import Event, Pod
from jobs.models import Job, Notice
from simulator import fault_parser
from simulator.faults_control import ControlServer
from tests.console.builders import sign_in
from tests.jobs.services import resizing
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def demo(world, page, aside):
    for name in ("north", "south", "spot"):
        aside(world.member, name, 4)


def step(page, title: str):
    return page.get_by_role("region", name=title)


def test_it_leads_through_six_steps_by_keyboard(page, demo, axe):
    sign_in(page)
    steps = {"The fleet at a glance": "/fleet", "Submit a job": "/submit", "Why does it wait?": r"/jobs\?state=Queued"}
    steps |= {
        "Who is promised what": "/quotas",
        "Reclaim a node and watch": "/fleet",
        "Break a cluster and watch": "/fleet",
    }
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
    expect(page.get_by_text("Tour · step 2 of 6")).to_be_visible()


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


def walk(page, steps: int) -> None:
    for number in range(1, steps + 1):
        expect(page.get_by_text(f"Tour · step {number} of")).to_be_visible()
        page.get_by_role("button", name="Next", exact=True).click()


def last_pod(name: str) -> Pod:
    return Pod.objects.filter(job_uid=Job.objects.get(name=name).uid).order_by("-index")[0]


def notified(name: str, pod: Pod, step: int) -> None:
    """The supervisor of the member has recorded that the pod saved this step and left."""
    job, now = Job.objects.get(name=name), timezone.now()
    about = {"job": job, "attempt": pod.attempt, "cluster_name": "north", "scope": "Pods", "cause": "reclaim"}
    times = {"at": now, "deadline": now + timedelta(seconds=30), "heard_at": now, "left_at": now}
    Notice.objects.create(**about, **times, notice_id="n", node=pod.node, pod=pod.name, saved_step=step)


def test_it_reclaims_a_node_under_an_elastic_job_and_tells_what_its_worker_saved(world, page, aside, simulator, axe):
    aside(world.apply, POLICY, resizing.elastic("llama", 2, least=1, most=2))
    aside(world.expect, "llama", "Running")
    pod = aside(last_pod, "llama")
    sign_in(page)
    walk(page, 4)
    story = step(page, "Reclaim a node and watch")
    story.get_by_role("button", name="Reclaim a node under default/llama").click()
    expect(story.get_by_text(re.compile("is taken back in 30 seconds"))).to_be_visible()
    aside(notified, "llama", pod, 40)
    expect(story.get_by_text(f"{pod.name} saved step 40 and left.")).to_be_visible()
    assert axe(page) == []
    story.get_by_role("button", name=f"Bring {pod.node} back").click()
    expect(story.get_by_text(f"{pod.node} is back", exact=False)).to_be_visible()
    assert aside(Event.objects.filter(reason="ReclaimedOnPurpose", message__contains=pod.node).count) == 1


def test_it_breaks_a_simulated_cluster_and_ends_with_a_moved_job(world, page, aside, simulator, axe):
    aside(world.apply, POLICY, pytorch_job("llama", workers=0, duration="10h"))
    aside(world.expect, "llama", "Running")
    sign_in(page)
    walk(page, 5)
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
