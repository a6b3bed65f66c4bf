"""The page of a cluster: its spot pools, and what each node that was reclaimed cost the jobs that ran there."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from fleet.kube.resources import NODES
from fleet.models import Node, Pod
from jobs.models import Attempt, Job, Notice
from tests.console.builders import sign_in
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


def reclaimed(name: str) -> str:
    """A minute ago the node of its master was taken back: the master saved, the worker did not. Returns the node."""
    job, at = Job.objects.get(name=name), timezone.now() - timedelta(minutes=1)
    Attempt.objects.filter(job=job).update(started_at=at - timedelta(minutes=10))
    node = str(Pod.objects.get(name=f"{name}-master-0").node)
    about = {
        "job": job,
        "attempt": job.attempt,
        "cluster_name": "north",
        "node": node,
        "cause": "aws-spot",
        "scope": "Job",
    }
    for pod, step, before_s in ((f"{name}-master-0", 40, 20), (f"{name}-worker-0", None, 50)):
        times = {"at": at, "deadline": at + timedelta(seconds=120), "left_at": at + timedelta(seconds=before_s)}
        Notice.objects.create(**about, **times, notice_id="n", pod=pod, saved_step=step)
    return node


def of_spot_pool(world, node: str) -> None:
    """Its provider labels the node in its cluster, and the fleet has seen it."""
    labels = {"karpenter.sh/capacity-type": "spot", "karpenter.sh/nodepool": "cheap"}
    world.clients["north"].merge_patch(NODES.path(name=node), {"metadata": {"labels": labels}})
    world.until(lambda: labels.items() <= Node.objects.get(name=node).labels.items(), "the labels", patience_s=90)


def test_it_shows_pools_and_reclaimed_nodes_with_what_was_lost(world, page, aside, axe):
    aside(world.member, "north", 4)
    aside(world.apply, POLICY, pytorch_job("llama", workers=1, duration="10h"))
    aside(world.expect, "llama", "Running")
    sign_in(page, at="/fleet/north")
    expect(page.get_by_role("heading", name="north", exact=True)).to_be_visible()
    expect(page.get_by_role("region", name="Spot nodes")).to_have_count(0)
    node = aside(reclaimed, "llama")
    aside(of_spot_pool, world, node)
    page.reload()
    spot = page.get_by_role("region", name="Spot nodes")
    expect(spot.get_by_text("cheap: 1 of 1 nodes ready")).to_be_visible()
    row = spot.get_by_role("row").filter(has_text=f"{node} (cheap)")
    expect(row).to_contain_text("aws-spot")
    expect(row.get_by_role("cell", name="1/2", exact=True)).to_be_visible()
    expect(row.get_by_role("cell", name="0.5", exact=True)).to_be_visible()
    expect(row.get_by_role("link", name="default/llama")).to_be_visible()
    assert axe(page) == []
