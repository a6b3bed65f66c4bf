"""A token for clusters, nodes and queues names no job, nor a pod of one, whatever its user may read: every operation of REST
that is open to it, in a fleet whose nodes and queues have something to say about jobs."""

from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction
from django.utils import timezone

from fleet.core.node_exclusions import ExclusionReason
from fleet.core.security.token_scopes import Scope
from fleet.models import Cluster, Grant
from fleet.services.authorization import access
from fleet.services.clusters import node_exclusions
from fleet.services.clusters.node_exclusions import Fault
from jobs.models import Job
from tests.attacks.two_teams import SECRET, bodies, looks, rest_paths, two_teams
from tests.fleet.builders import by_token
from tests.support.people import person

pytestmark = pytest.mark.django_db
NAMED = (
    "GET /api/v1/gpus/north/",
    "GET /api/v1/nodes/",
    "POST /api/v1/whatif/",
)
"""What names jobs to a token that is for jobs as well: else the test could not fail of it."""


@pytest.fixture
def jobs() -> tuple[Job, Job]:
    both = two_teams(evicts="ours")
    fault = Fault(
        "k", timezone.now(), ExclusionReason.GPU_FAULT, "Xid 79", {"job": f"team-b/{SECRET}-runs", "attempt": 1}
    )
    node_exclusions.report(Cluster.objects.get(name="north"), "node", fault, timezone.now(), uuid4())
    return both


def naming(client: Any, jobs: tuple[Job, Job], *, only: tuple[str, ...] = ()) -> tuple[set[str], int]:
    """The operations (of all, or of these) whose answer names a job of the team, and how many were answered well."""
    named, well = set(), 0
    client.raise_request_exception = False
    for method, path in rest_paths(*jobs):
        if only and f"{method} {path}" not in only:
            continue
        for asked in looks(path) if method == "GET" else [path]:
            for body in [None] if method == "GET" else bodies(path):
                with transaction.atomic():
                    if isinstance(body, str):
                        answer = client.generic(method, asked, body, content_type="application/yaml")
                    else:
                        answer = getattr(client, method.lower())(
                            asked, body, format="json" if body is not None else None
                        )
                    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
                    transaction.set_rollback(True)
                well += answer.status_code < 300
                if SECRET.encode() in content:
                    named.add(f"{method} {path}")
    return named, well


def test_a_token_for_clusters_nodes_and_queues_names_no_job(jobs: tuple[Job, Job]) -> None:
    rita = person("rita", (Grant.Role.VIEWER, ""))
    shared = (access.FLEET_WIDE - access.FOR_ADMINS) | access.ENTITLEMENT
    named, well = naming(by_token(rita, Scope(kinds=shared)), jobs)
    assert named == set() and well > 20
    named, _ = naming(by_token(rita, Scope()), jobs, only=NAMED)
    assert named == set(NAMED)
