"""What if, as a page: a change is supposed, each job's outcome is named, and a link carries both to somebody else."""

import pytest
from playwright.sync_api import expect

from tests.console.builders import sign_in
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_says_what_a_lost_cluster_would_do_and_is_shared_by_link(world, page, aside, north, axe):
    aside(world.apply, pytorch_job("llama", duration="10h"))
    aside(world.expect, "llama", "Running", on="north")
    sign_in(page, at="/whatif")
    calculate = page.get_by_role("button", name="Calculate")
    expect(calculate).to_have_attribute("aria-description", "Choose at least one change")
    page.get_by_role("combobox", name="A cluster").click()
    page.get_by_role("option", name="north").click()
    page.get_by_role("textbox", name="Jobs are submitted").fill(pytorch_job("bert"))
    calculate.click()
    result = page.get_by_role("region", name="What the next scheduling cycle would do")
    for name, before in (("llama", "Runs on north"), ("bert", "Not submitted")):
        row = result.get_by_role("row").filter(has_text=name)
        expect(row).to_contain_text(before)
        expect(row).to_contain_text("Waits")
    assert axe(page) == []
    address = page.url
    page.get_by_role("textbox", name="Jobs are submitted").fill("")
    expect(result).to_contain_text("not been calculated yet")
    expect(result.get_by_role("row")).to_have_count(0)
    page.goto("/fleet")
    page.goto(address)
    expect(result.get_by_role("row").filter(has_text="bert")).to_be_visible()
    page.get_by_role("button", name="Clear").click()
    expect(result).to_contain_text("Nothing to calculate yet")
