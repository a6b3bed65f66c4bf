"""The GPUs of all clusters in one view: a legend of what is on screen, and a canvas on which each GPU leads to its job."""

import pytest
from playwright.sync_api import expect

from tests.console.builders import sign_in
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_names_who_is_on_the_gpus_of_every_cluster(world, page, aside, north, axe):
    aside(world.member, "south", 2)
    aside(world.apply, pytorch_job("llama", duration="10h"))
    aside(world.expect, "llama", "Running")
    sign_in(page, at="/fleet?view=gpus")
    legend = page.get_by_role("list", name="What the colours mean")
    owner = legend.get_by_role("listitem").filter(has_text="default/llama")
    gpus = int(owner.locator("b").inner_text())
    assert gpus > 0
    for cluster in ("north", "south"):
        expect(page.get_by_role("region", name=cluster)).to_contain_text(f"{cluster}: ")
    expect(legend.get_by_role("listitem").filter(has_text="Free")).to_be_visible()
    assert axe(page) == []
    expect(page.get_by_text("Point at a GPU")).to_be_visible()
    page.get_by_role("region", name="north").locator("canvas").click(position={"x": 4, "y": 4})
    expect(page.get_by_role("heading", name="llama", level=1)).to_be_visible()
    relations = page.get_by_role("region", name="Relations")
    for part in ("example-policy", "Attempt 1 placed on north", "worker 0 Running"):
        expect(relations).to_contain_text(part, ignore_case=True)
    assert axe(page) == []
