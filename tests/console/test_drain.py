"""A cluster that has to be left shows how far its jobs are; a job whose lost copy may still run says so, in each language."""

from dataclasses import replace
from uuid import uuid4

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from fleet.models import Cluster, Pod
from fleet.services.clusters import clusters
from tests.console.builders import ANSWERS, answers, go, open_job, sign_in
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


def drain(name: str) -> None:
    clusters.drain(Cluster.objects.get(name=name), by="test", now=timezone.now())


def test_it_shows_the_progress_of_a_drain_in_four_states(world, page, aside, north, settings):
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, cluster_toleration_s=3600.0)
    page.add_init_script(ANSWERS)
    aside(world.apply, pytorch_job("llama", duration="10h"))
    aside(world.expect, "llama", "Running", on="north")
    sign_in(page)
    go(page, "/fleet/north")
    panel = page.get_by_role("region", name="Jobs leaving")
    expect(page.get_by_role("heading", name="Nodes", exact=True)).to_be_visible()
    expect(panel).to_have_count(0)
    aside(drain, "north")
    expect(panel.locator("dd").first).to_have_text("1")
    expect(panel.get_by_role("status")).to_contain_text("a minute · At least 1 minute at this pace")
    answers(page, "clusters/north/evictions")
    page.reload()
    expect(panel.locator("[aria-busy=true]")).to_be_visible()
    answers(page, "clusters/north/evictions", refused=True)
    page.reload()
    expect(panel.get_by_role("alert")).to_contain_text("not now", ignore_case=True)
    answers(page)
    panel.get_by_role("button", name="Try again").click()
    expect(panel.locator("dd").first).to_have_text("1")
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, cluster_toleration_s=0.1)
    expect(panel.get_by_role("status")).to_contain_text("Copies are removed once their jobs have a place elsewhere")
    aside(world.member, "south", 4)
    aside(world.expect, "llama", "Running", on="south")
    expect(panel.get_by_role("heading", name="All jobs have left north")).to_be_visible()


def test_it_says_that_two_copies_of_a_job_may_run(world, page, aside, north, settings):
    settings.CONVOY_FAILOVER = replace(settings.CONVOY_FAILOVER, cluster_toleration_s=0.1)
    aside(world.apply, pytorch_job("llama", duration="10h"))
    aside(world.expect, "llama", "Running", on="north")
    aside(world.member, "south", 4)
    aside(world.members["north"].stop)
    aside(world.expect, "llama", "Running", on="south")
    sign_in(page)
    open_job(page, "llama")
    notice = page.get_by_role("region", name="Two copies may run")
    expect(notice).to_contain_text("The copy of attempt 1 on north may run beside attempt 2: north does not answer")
    page.get_by_role("tab", name="Events").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("may run beside attempt 2")


def kept_there(node: str) -> None:
    """A pod of a job that has left, which saves its work."""
    about = {"namespace": "default", "name": "kept", "uid": "kept", "phase": "Running", "created_at": timezone.now()}
    Pod.objects.create(cluster=Cluster.objects.get(name="north"), job_uid=uuid4(), attempt=1, node=node, **about)


def test_a_node_is_drained_once_its_preview_was_seen_and_opened_again(world, page, aside, north, axe):
    aside(world.apply, pytorch_job("llama", workers=0, duration="10h"))
    aside(world.expect, "llama", "Running", on="north")
    aside(world.member, "south", 4)
    node = aside(lambda: Pod.objects.exclude(node="").values_list("node", flat=True).get())
    page.add_init_script(ANSWERS)
    sign_in(page, at="/fleet/north")
    page.get_by_role("region", name="GPU map").get_by_role("link", name=node, exact=True).click()
    jobs = page.get_by_role("region", name="Jobs on this node")
    expect(jobs.get_by_role("link", name="llama")).to_be_visible()
    answers(page, "whatif")
    page.get_by_role("button", name="Preview a drain").click()
    drain_it = page.get_by_role("button", name=f"Drain {node}")
    expect(drain_it).to_have_attribute("aria-disabled", "true")
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    page.get_by_role("button", name="Cancel").click()
    answers(page)
    page.reload()
    page.get_by_role("button", name="Preview a drain").click()
    effect = page.get_by_role("region", name="What a drain of this node would do")
    expect(effect.get_by_role("row").filter(has_text="llama")).to_contain_text("Starts on south")
    assert axe(page) == []
    aside(kept_there, node)
    page.reload()
    expect(jobs).to_contain_text("2 pods of jobs are on this node")
    page.get_by_role("button", name="Preview a drain").click()
    expect(effect.get_by_role("row").filter(has_text="llama")).to_contain_text("Starts on south")
    drain_it.click()
    expect(jobs).to_contain_text("The node is being drained")
    aside(world.expect, "llama", "Running", on="south")
    expect(jobs).to_contain_text("1 pod of a job is on this node")
    empty = jobs.get_by_role("heading", name="No job has pods on this node")
    expect(empty).to_have_count(0)
    aside(lambda: Pod.objects.filter(name="kept").delete())
    expect(empty).to_be_visible()
    page.get_by_role("button", name=f"Open {node} again").click()
    expect(page.get_by_role("button", name="Preview a drain")).to_be_visible()
