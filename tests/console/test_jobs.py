"""Stories of the jobs' pages: one that runs is followed, one that waits explains itself and starts when room is made."""

import re
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from jobs.models import Job
from tests.console.builders import go, open_job, sign_in
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


def submit(page: Page, manifest: str) -> None:
    """By REST, from within the signed-in browser."""
    token = next(each["value"] for each in page.context.cookies() if each["name"] == "csrftoken")
    headers = {"Content-Type": "application/yaml", "X-CSRFToken": token, "Referer": page.url}
    assert page.request.post("/api/v1/apply/", data=manifest, headers=headers).ok


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
    expect(why).to_contain_text("It does not fit on the only cluster. Nearest is north: short of")
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


def test_it_acts_on_many_and_names_them_before_and_after(world, page, aside, north):
    sign_in(page)
    aside(world.apply, pytorch_job("giant", gpus=8), pytorch_job("huge", gpus=8))
    aside(world.suspend, "huge")
    go(page, "/jobs?columns=priority,user")
    expect(page.get_by_role("columnheader", name="User")).to_be_visible()
    expect(page.get_by_role("checkbox", name="Select ")).to_have_count(3)
    page.get_by_role("checkbox", name="Select all that are loaded").check()
    bar = page.get_by_role("toolbar", name="2 selected")
    bar.get_by_role("button", name="Suspend").click()
    dialog = page.get_by_role("dialog", name="Suspend 2 jobs?")
    expect(dialog.get_by_role("list", name="These jobs")).to_contain_text("default/giant")
    expect(dialog).to_contain_text("The job is suspended already")
    dialog.get_by_role("button", name="Suspend").click()
    expect(dialog.get_by_role("status")).to_have_text("1 done, 1 refused")
    dialog.get_by_role("button", name="Close").last.click()
    page.get_by_role("button", name="Actions for giant").click()
    page.get_by_role("menuitem", name="Change priority").click()
    dialog = page.get_by_role("dialog", name="Priority of giant")
    dialog.get_by_label("New priority").fill("7")
    expect(dialog.get_by_role("list", name="These jobs")).to_contain_text("0 → 7")
    dialog.get_by_role("button", name="Change priority").click()
    expect(dialog.get_by_role("status")).to_have_text("1 done, 0 refused")
    dialog.get_by_role("button", name="Close").last.click()
    expect(page.get_by_role("row").filter(has_text="giant")).to_contain_text("7")
    go(page, "/jobs?group=state")
    page.get_by_role("button", name="Suspended 2").click()
    expect(page.get_by_role("region", name="Suspended, scrolls").get_by_role("link", name="giant")).to_be_visible()


def test_it_holds_a_hundred_pages_in_one_list_and_keeps_views(world, page, aside, axe):
    aside(many, 3_000)
    sign_in(page, at="/jobs?ordering=name")
    expect(page.get_by_text("3000 jobs")).to_be_visible()
    box = page.get_by_role("region", name="Jobs, scrolls")
    box.evaluate("box => box.scrollTo(0, box.scrollHeight)")
    expect(page.get_by_role("link", name="train-2999")).to_be_visible()
    assert box.get_by_role("row").count() < 60
    page.get_by_role("button", name="Views").click()
    page.get_by_label("Name of the view").fill("by name")
    page.get_by_role("button", name="Save this view").click()
    page.goto("/jobs")
    page.get_by_role("button", name="Views").click()
    views = page.get_by_role("dialog", name="Views")
    expect(views).to_be_visible()
    assert axe(page) == []
    views.get_by_role("button", name="by name", exact=True).click()
    expect(page).to_have_url(re.compile("ordering=name"))
    expect(views).to_be_hidden()


def many(count: int) -> None:
    now = timezone.now()
    Job.objects.bulk_create(
        Job(
            api_version="kubeflow.org/v1",
            kind="PyTorchJob",
            namespace="vision",
            name=f"train-{number:04}",
            manifest={},
            roles=[],
            total={},
            state=Job.State.SUCCEEDED,
            created_at=now,
            queued_at=now,
        )
        for number in range(count)
    )
