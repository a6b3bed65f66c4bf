"""What GPUs do: the map by utilisation, the jobs that leave theirs idle, and the GPUs of one job over time."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from fleet.core.gpu_readings import Reading
from fleet.core.settings import GpuSettings
from fleet.models import Pod
from fleet.services.gpus import storing
from tests.console.builders import go, sign_in
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


def measure_idle() -> int:
    """Every pod's GPU has been at 1 % for 40 minutes; how many there are."""
    now, pods = timezone.now(), list(Pod.objects.exclude(node="").select_related("cluster"))
    Pod.objects.update(started_at=now - timedelta(hours=1))
    for at in (now - timedelta(minutes=40), now):
        for node in {pod.node for pod in pods}:
            gpus = [
                Reading(
                    str(i), utilization=1, memory_used=900, memory_total=81920, namespace=pod.namespace, pod=pod.name
                )
                for i, pod in enumerate(pod for pod in pods if pod.node == node)
            ]
            storing.store(pods[0].cluster, {node: gpus}, at)
    return len(pods)


def test_it_shows_what_gpus_do_and_who_leaves_them_idle(world, page, aside, north, axe, settings):
    # However slow the machine is, what was measured counts as of now.
    settings.CONVOY_GPUS = GpuSettings(interval_s=3600)
    aside(world.apply, pytorch_job("llama", duration="10h"))
    aside(world.expect, "llama", "Running")
    sign_in(page, at="/fleet/north")
    expect(page.get_by_role("region", name="GPU utilisation")).to_contain_text("Not measured")
    expect(page.get_by_role("region", name="Allocated but idle")).to_have_count(0)
    idle = aside(measure_idle)
    go(page, "/fleet?view=gpus")
    row = page.get_by_role("region", name="Allocated but idle").get_by_role("row").filter(has_text="llama")
    expect(row).to_contain_text(f"{idle} of ")
    groups = page.get_by_role("region", name="Utilisation by team and queue")
    team = groups.get_by_role("row").filter(has_text="default")
    expect(team.get_by_role("cell")).to_have_text(["default", str(idle), str(idle), str(idle), "1 %"])
    page.get_by_role("radiogroup", name="Colour by").get_by_text("Utilisation").click()
    legend = page.get_by_role("list", name="What the colours mean").get_by_role("listitem")
    expect(legend.filter(has_text="Allocated, idle").locator("b")).to_have_text(str(idle))
    assert axe(page) == []
    row.get_by_role("link", name="llama").click()
    use = page.get_by_role("region", name="GPU utilisation")
    expect(use.get_by_role("table", name="GPUs now").get_by_role("row")).to_have_count(idle + 1)
    expect(use.get_by_role("slider")).to_be_visible()
    assert axe(page) == []
    go(page, "/fleet/north")
    page.get_by_role("radiogroup", name="Colour by").get_by_text("Utilisation").click()
    cell = page.get_by_role("region", name="GPU map").get_by_role("link", name="1 % used").first
    expect(cell).to_have_attribute("data-use", "idle")
