"""Lists cost a fixed number of queries however much they show (`tests/query_budget.json`), and the contract is written down."""

import json
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.models import Cluster, Event
from jobs.models import Binding, Job
from jobs.services.submission import manifests, submit
from tests.support.world import POLICY, pytorch_job

ROOT = Path(settings.ROOT)
BUDGET = json.loads((ROOT / "tests" / "query_budget.json").read_text())


@pytest.fixture
def crowd(north: Cluster) -> None:
    """A dozen of everything."""
    now = timezone.now()
    texts = [POLICY.replace("example-policy", f"p{i}") + "---\n" + pytorch_job(f"j{i}") for i in range(12)]
    submit.apply(manifests.parse("\n---\n".join(texts).encode()), by="test", now=now)
    Job.objects.update(cluster=north, state="Running")
    Binding.objects.bulk_create(Binding(job=job, cluster=north, scheduled_at=now) for job in Job.objects.all())
    for i in range(12):
        other = Cluster.objects.create(name=f"c{i}", server="", access={}, state_since=now, joined_at=now)
        other.nodes.create(name="n", ready=True, allocatable={"cpu": 1})
    assert Event.objects.count() >= 12


@pytest.mark.parametrize("path", BUDGET)
def test_it_keeps_to_its_budget_of_queries(as_admin, as_editor, crowd, path):
    for client in (as_admin, as_editor):
        if client.get(path).status_code == 403 and client is as_editor:
            continue
        with CaptureQueriesContext(
            connection,
        ) as asked:
            assert client.get(path).status_code == 200
        assert len(asked) <= BUDGET[path], [each["sql"][:120] for each in asked]


def test_it_writes_the_contract_down_without_a_warning(tmp_path):
    file = tmp_path / "openapi.json"
    call_command("spectacular", "--validate", "--fail-on-warn", "--format", "openapi-json", "--file", str(file))
    assert json.loads(file.read_text()) == json.loads((ROOT / "docs" / "openapi.json").read_text()), "make generate"
