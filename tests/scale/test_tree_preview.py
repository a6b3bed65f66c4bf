"""Benchmark ``tree_preview``: the preview of an edit of a tree of 1,000 leaves, with 4,000 running and 1,000 waiting jobs.

Result in ``.convoy/bench/tree_preview.json``. Every job is a row, and each of the 500 jobs that wait within their min needs a
search for jobs to stop, under both trees. Processor time, the best of three, because other work is not what is measured.
"""

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from quotas.services import previews, trees
from tests.support.many_jobs import give, many_leaves

pytestmark = [pytest.mark.bench, pytest.mark.django_db]
MOST_S = 2.0
"""1.6 s on a core that others used too, November 2026; 12.3 s before the standing of all nodes was computed at once."""


def test_a_preview_of_a_thousand_leaves_takes_no_more_than_two_seconds(
    report: Callable[[str, dict[str, Any]], None],
) -> None:
    now = timezone.now()
    trees.apply(many_leaves(teams=20, leaves=50), by="bench", now=now)
    give(teams=20, leaves=50, running=4000, waiting=1000)
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        made = previews.of_manifest(many_leaves(teams=20, leaves=50, lower=True), by="bench", now=now)
        best = min(best, time.process_time() - began)
    assert made.saves and made.effect.reclaimed == ()
    report("tree_preview", {"leaves": 1000, "running": 4000, "waiting": 1000, "seconds": round(best, 2)})
    assert best <= MOST_S
