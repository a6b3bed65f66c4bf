"""Submissions, completions, cycles and edits of the tree at the same moment, on the real database: nothing is lost."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.utils import timezone

from fleet.errors import Conflict
from jobs.models import Job
from jobs.services.follow import sweep
from quotas import queries
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import GPU, team
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
WHOLE = {"cpu": 10**6, "memory": "900000Gi", GPU: 60, "kube-queue/max-jobs": 1000}


def a_tree(most: int) -> None:
    leaves = [team("a", 0, most, namespaces=["default"]), team(f"other-{most}")]
    leaves[1]["max"][GPU] = 60
    trees.apply(manifest(quota("root", WHOLE, WHOLE, *leaves)), by="system", now=timezone.now())


def submit(number: int) -> str:
    books.apply(pytorch_job(f"new-{number}", workers=0))
    return "submitted"


def end(number: int) -> str:
    books.end(f"old-{number}")
    return "ended"


def edit(most: int) -> str:
    try:
        a_tree(most)
    except Conflict as e:
        return "would strand" if "while its jobs use" in str(e) else f"conflict: {e}"
    return "edited"


def sweep_now(_: int) -> str:
    sweep.run(timezone.now())
    books.cycle()
    return "swept"


def alone(deed, number: int) -> str:
    try:
        return deed(number)
    finally:
        connection.close()


def test_a_tree_edited_among_50_submissions_and_20_ends_loses_nothing():
    books.a_cluster(gpus=200)
    a_tree(60)
    books.apply(*(pytorch_job(f"old-{i}", workers=0) for i in range(20)))
    assert books.cycle() == 20
    books.sent()
    deeds = [*((submit, i) for i in range(50)), *((end, i) for i in range(20)), *((edit, 30 + i) for i in range(8))]
    deeds += [(sweep_now, i) for i in range(12)]
    random.Random(7).shuffle(deeds)
    with ThreadPoolExecutor(6) as people:
        done = list(people.map(lambda deed: alone(*deed), deeds))
    assert (done.count("submitted"), done.count("ended")) == (50, 20)
    edits = [said for said in done if said.startswith(("edited", "would", "conflict"))]
    assert edits.count("edited") >= 1 and queries.tree_row().generation == 1 + edits.count("edited")
    books.cycle()
    most = queries.tree().by_path["root/a"].max[GPU]
    charged = Job.objects.filter(charge__isnull=False).count()
    assert books.used("root")[GPU] == books.used("root/a")[GPU] == charged <= most
    assert charged == Job.objects.filter(state__in=Job.ON_MEMBER).count() == min(50, most)
    assert not Job.objects.exclude(state__in=Job.FINISHED).exclude(leaf="root/a").exists()
