"""Submitting through the console: a file, what the fleet would do about it, and the job it becomes."""

import pytest
from playwright.sync_api import expect

from tests.console.builders import ANSWERS, answers, sign_in, write
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_submits_a_file_after_saying_where_it_would_go(world, page, aside, north):
    page.add_init_script(ANSWERS)
    sign_in(page)
    page.get_by_role("link", name="Submit").click()
    outlook = page.get_by_role("region", name="What would happen")
    expect(outlook).to_contain_text("pytorch-test would start on north")
    answers(page, "apply/preview/")
    write(page, "kind: Unanswered")
    expect(outlook).not_to_contain_text("pytorch-test")
    answers(page)
    write(page, pytorch_job("llama", duration="10h"))
    expect(outlook).to_contain_text("llama would start on north")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name="llama", level=1)).to_be_visible()
    expect(page.get_by_text("Running").first).to_be_visible()


def test_it_keeps_form_and_file_in_step_and_says_what_is_short(page, aside, north):
    sign_in(page, at="/submit")
    worker = page.get_by_role("group", name="Worker")
    expect(worker).to_be_visible()
    worker.get_by_label("GPUs each").fill("8")
    expect(page.get_by_role("textbox", name="Manifest")).to_contain_text("nvidia.com/gpu: 8")
    outlook = page.get_by_role("region", name="What would happen")
    expect(outlook).to_contain_text("pytorch-test would wait")
    expect(outlook).to_contain_text("Nearest is north: short of")


def test_it_marks_the_line_of_a_fault_and_does_not_send(page, aside, north):
    sign_in(page, at="/submit")
    page.get_by_label("Name", exact=True).fill("Not A Name")
    outlook = page.get_by_role("region", name="What would happen")
    expect(outlook).to_contain_text("It would be refused")
    expect(page.locator(".cm-lint-marker-error")).to_be_visible()
    expect(page.get_by_role("button", name="Submit")).to_be_disabled()
