"""What would help, as a person follows it: from the waiting job through the advice to the job that runs."""

import re

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from fleet.models import Grant
from quotas.models import Queue
from quotas.services import queues
from tests.console.builders import a_tree, open_job, sign_in
from tests.quotas.core.builders import JOBS, quota
from tests.support.books import GPU
from tests.support.people import person
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


def advice(page):
    return page.get_by_role("list", name="What would help")


def running(page) -> None:
    expect(page.get_by_role("main").get_by_text("Running").first).to_be_visible()


def test_it_opens_a_held_queue_after_saying_who_held_it_and_why(world, page, aside, north, axe):
    aside(a_tree, quota("a", {GPU: 0}, {GPU: 4}, namespaces=["default"]))

    def hold() -> None:
        queues.set_state(
            Queue.objects.get(path="root/a"), Queue.State.HELD, by="ada", now=timezone.now(), comment="budget review"
        )

    aside(hold)
    sign_in(page)
    aside(world.apply, pytorch_job("speech", workers=0, duration="10h"))
    open_job(page, "speech")
    expect(advice(page).get_by_role("listitem")).to_have_count(1)
    expect(advice(page)).to_contain_text("Queue root/a was closed by ada")
    expect(advice(page)).to_contain_text("“budget review”")
    assert axe(page) == []
    advice(page).get_by_role("button", name="Open the queue").click()
    page.get_by_role("dialog", name="Open queue root/a?").get_by_role("button", name="Open the queue").click()
    running(page)


def test_it_raises_a_limit_as_a_draft_that_shows_its_effect(world, page, aside, north):
    aside(a_tree, quota("a", {}, {GPU: 4, JOBS: 1}, namespaces=["default"]))
    sign_in(page)
    aside(world.apply, pytorch_job("lora-a", workers=0, duration="10h"))
    aside(world.expect, "lora-a", "Running")
    aside(world.apply, pytorch_job("lora-b", workers=0, duration="10h"))
    open_job(page, "lora-b")
    expect(advice(page)).to_contain_text("There is room when this job ends: default/lora-a.")
    expect(advice(page)).to_contain_text("Raise max of root/a to 2 jobs.")
    advice(page).get_by_role("button", name="Draft and see the effect").click()
    expect(page).to_have_url(re.compile("/quotas"))
    draft = page.get_by_role("region", name="Draft")
    expect(draft).to_contain_text("root/a")
    expect(draft).to_contain_text("2")
    draft.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("Saved as generation 2.")).to_be_visible()
    open_job(page, "lora-b")
    running(page)


def test_it_suspends_the_job_that_holds_the_slot_with_a_preview(world, page, aside, north):
    aside(a_tree, quota("a", {}, {GPU: 4, JOBS: 1}, namespaces=["default"]))
    sign_in(page)
    aside(world.apply, pytorch_job("lora-a", workers=0, duration="10h"))
    aside(world.expect, "lora-a", "Running")
    aside(world.apply, pytorch_job("lora-b", workers=0, duration="10h"))
    open_job(page, "lora-b")
    advice(page).get_by_role("button", name="Suspend default/lora-a").click()
    dialog = page.get_by_role("dialog", name="Suspend 1 job")
    expect(dialog).to_contain_text("1 can be done")
    dialog.get_by_role("button", name="Suspend").click()
    running(page)


def test_it_makes_the_policy_that_is_missing_once_it_was_shown(world, page, aside, axe):
    aside(world.member, "north", 4)
    sign_in(page)
    aside(world.apply, pytorch_job("orphan", workers=0, duration="10h"))
    open_job(page, "orphan")
    expect(advice(page).get_by_role("listitem")).to_have_count(1)
    advice(page).get_by_role("button", name="Create the policy").click()
    dialog = page.get_by_role("dialog", name="Create the policy")
    expect(dialog.get_by_role("textbox", name="Manifest")).to_have_value(re.compile("kind: PyTorchJob"))
    expect(dialog).to_contain_text("PropagationPolicy default/pytorchjob would be created")
    assert axe(page) == []
    dialog.get_by_role("button", name="Apply").click()
    running(page)


def test_it_edits_what_helps_before_it_is_applied(world, page, aside, north):
    aside(a_tree, quota("a", {}, {GPU: 2}, namespaces=["default"]))
    aside(world.apply, pytorch_job("big", workers=0, gpus=4, duration="10h"))
    sign_in(page)
    open_job(page, "big")
    advice(page).get_by_role("button", name="Change the request").click()
    editor = page.get_by_role("textbox", name="Manifest")
    expect(editor).to_contain_text("name: big")
    page.get_by_role("group", name="Master").get_by_label("GPUs each").fill("2")
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.get_by_role("heading", name="big", level=1)).to_be_visible()
    running(page)


def test_it_says_which_role_may_to_a_reader_and_names_no_job_of_others(world, page, aside, north):
    aside(a_tree, quota("a", {GPU: 0}, {GPU: 4}, namespaces=["default"]))
    aside(person, "vic", (Grant.Role.VIEWER, "default"))
    aside(lambda: queues.set_state(Queue.objects.get(path="root/a"), Queue.State.HELD, by="ada", now=timezone.now()))
    aside(world.apply, pytorch_job("speech", workers=0))
    sign_in(page, "vic")
    open_job(page, "speech")
    button = advice(page).get_by_role("button", name="Open the queue")
    expect(button).to_have_attribute("aria-disabled", "true")
    expect(advice(page)).to_contain_text("Takes the role quota-admin")


@pytest.mark.parametrize(
    ("language", "title", "text"),
    [("简体中文", "有助于启动的办法", "配额树"), ("Bahasa Indonesia", "Yang akan membantu", "kuota")],
)
def test_it_helps_in_the_language_of_the_reader(world, page, aside, north, language, title, text):
    aside(a_tree, quota("a", {}, {GPU: 2}, namespaces=["default"]))
    aside(world.apply, pytorch_job("big", workers=0, gpus=4))
    sign_in(page)
    open_job(page, "big")
    expect(advice(page)).to_contain_text("Raise max of root/a to 4 GPUs.")
    page.get_by_role("button", name="Language").click()
    page.get_by_role("menuitemradio", name=language).click()
    section = page.locator("ul").filter(has_text="root/a").first
    expect(section).to_contain_text("root/a")
    expect(section).not_to_contain_text("Raise max")


def test_it_says_when_it_looked_and_what_an_empty_cluster_would_hold(world, page, aside, north):
    aside(world.apply, pytorch_job("giant", gpus=8))
    sign_in(page)
    open_job(page, "giant")
    table = page.get_by_role("region", name="Cluster by cluster")
    expect(table).to_contain_text("ago")
    expect(table).to_contain_text("even when empty")
