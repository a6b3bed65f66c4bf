"""Accounting and reliability in the console: the figures of REST, for the time that is chosen."""

import re
from datetime import datetime, timedelta
from uuid import uuid4

from django.utils import timezone
from playwright.sync_api import expect

from jobs.models import UsageSpan
from quotas.models import QuotaRevision
from tests.console.builders import go, sign_in, start_tree

SLOW_MS = 120_000


def worked(now: datetime) -> None:
    """Deleted jobs: night, of vision, had 2 GPUs for 5 hours; speech, which is promised 2, had 4 for an hour, and failed."""
    start_tree()
    QuotaRevision.objects.update(at=now - timedelta(days=30))
    for leaf, gpus, begun, hours, outcome in (("vision/night", 2, 6, 5, "Succeeded"), ("speech", 4, 4, 1, "Failed")):
        begin = now - timedelta(hours=begun)
        UsageSpan.objects.create(
            job_uid=uuid4(), number=1, kind="running", begin=begin, end=begin + timedelta(hours=hours), gpus=gpus,
            outcome=outcome, namespace=leaf.rpartition("/")[2], user="ada", leaf=f"root/{leaf}", cluster="north", price=2.5,
        )  # fmt: skip


def test_it_shows_what_a_day_cost_who_lent_to_whom_and_what_it_was_lost_to(page, aside, north, axe):
    aside(worked, timezone.now())
    sign_in(page)
    go(page, "/accounting")
    costs = page.get_by_role("region", name="GPU-hours and cost")
    expect(costs.get_by_role("row", name=re.compile("^night 10 .* 25.00"))).to_be_visible(timeout=SLOW_MS)
    costs.get_by_role("combobox", name="Group by").select_option("queue")
    expect(costs.get_by_role("row", name=re.compile("^root.speech 4 .* 10.00"))).to_be_visible(timeout=SLOW_MS)
    expect(costs.get_by_role("link", name="CSV")).to_have_attribute("href", re.compile("by=queue&from=.*form=csv"))
    lent = page.get_by_role("table", name="GPU-hours lent below root")
    expect(lent.get_by_role("row", name="in no min here 2 2", exact=True)).to_be_visible(timeout=SLOW_MS)
    waits = page.get_by_role("region", name="Waits")
    expect(waits.get_by_role("row", name=re.compile("^root.speech 0s 0s 1"))).to_be_visible(timeout=SLOW_MS)
    assert axe(page) == []
    go(page, "/reliability")
    classes = page.get_by_role("region", name="Causes of lost GPU-hours")
    expect(classes.get_by_role("row", name=re.compile("^Unknown 4 .* 1 6h$"))).to_be_visible(timeout=SLOW_MS)
    assert axe(page) == []
