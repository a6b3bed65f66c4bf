"""Tokens that may less than their user, at what shows values over time, resizes jobs and opens streams into pods; and the lines
that these acts leave in the audit."""

import json
from typing import Any

import pytest
from django.utils import timezone

from fleet.core.security.token_scopes import Scope
from fleet.member.client import Access
from fleet.models import AuditEntry, Pod
from fleet.services.members import member_clients
from jobs.models import Job
from tests.attacks.kube_door import Door
from tests.attacks.stream_requests import UPGRADE, ask
from tests.attacks.two_teams import submitted
from tests.fleet.builders import by_token
from tests.support import books
from tests.support.people import person

pytestmark = pytest.mark.django_db(transaction=True)
KUBE = "/api/v1/namespaces/vision/pods/p"
SCALE = "/apis/kubeflow.org/v1/namespaces/vision/pytorchjobs/llama/scale"
READS = {"series of teams": "series/?metric=used&by=team", "gpu-hours": "gpu-hours/", "attempts": "attempts/"}
STREAMS = ("exec", "attach", "portforward")
ALL = frozenset({*READS, *STREAMS, "log", "resize"})
SCOPES: dict[str, tuple[Scope, frozenset[str]]] = {
    "none": (Scope(), ALL),
    "reads": (Scope(verbs=frozenset({"read"})), frozenset({*READS, "log"})),
    "jobs": (Scope(kinds=frozenset({"Job"})), ALL - {*STREAMS, "log"}),
    "pods": (Scope(kinds=frozenset({"Pod"})), frozenset({*STREAMS, "log"})),
    "pods, to read": (Scope(verbs=frozenset({"read"}), kinds=frozenset({"Pod"})), frozenset({"log"})),
    "clusters": (Scope(kinds=frozenset({"Cluster"})), frozenset()),
    "another namespace": (Scope(namespaces=frozenset({"speech"})), frozenset(READS)),
    "deletes": (Scope(verbs=frozenset({"delete"})), frozenset()),
}
"""What each lets through; of another namespace, reads answer with nothing of this one."""


@pytest.fixture
def job(transactional_db: None) -> Job:
    cluster = books.a_cluster("north")
    cluster.access = member_clients.stored(Access("https://127.0.0.1:1"))
    cluster.save()
    made = submitted("vision", "llama", gpus=1)
    assert books.cycle() == 1
    about = {"namespace": "vision", "attempt": 1, "phase": "Running", "node": "n", "created_at": timezone.now()}
    Pod.objects.create(cluster=cluster, name="p", uid="1", job_uid=made.uid, role="master", **about)
    AuditEntry.objects.all().delete()
    return made


@pytest.mark.parametrize("name", SCOPES)
def test_a_scope_lets_through_what_it_names_and_nothing_else(job: Job, name: str) -> None:
    scope, expected = SCOPES[name]
    client = by_token(person("eve", ("editor", "vision"), ("viewer", "speech")), scope)
    answers: dict[str, tuple[int, Any]] = {}
    for look, path in READS.items():
        answer = client.get(f"/api/v1/{path}")
        answers[look] = (answer.status_code, answer.content)
    for part in (*STREAMS, "log"):
        answers[part] = ask(client.text, f"{KUBE}/{part}", b"command=ls", UPGRADE if part in STREAMS else [])
    answer = client.post(f"/api/v1/jobs/{job.uid}/resize/", {"replicas": 2}, format="json")
    answers["resize"] = (answer.status_code, answer.content)
    passed = {what for what, (status, _) in answers.items() if status not in (403, 404)}
    assert passed == expected, {what: status for what, (status, _) in answers.items()}
    if name == "another namespace":
        assert not any(b"vision" in content or b"llama" in content for _, content in map(answers.get, READS))


@pytest.mark.parametrize("part", STREAMS)
def test_a_stream_leaves_a_line_before_the_cluster_is_asked_and_a_refused_one_too(job: Job, part: str) -> None:
    for user, outcome in (
        (person("eve", ("editor", "vision")), "failed"),
        (person("vic", ("viewer", "vision")), "refused"),
    ):
        status, _ = ask(by_token(user, Scope()).text, f"{KUBE}/{part}", b"command=cat&command=/etc/passwd", UPGRADE)
        assert status == (503 if outcome == "failed" else 403)
        line = AuditEntry.objects.latest("pk")
        assert (line.actor, line.door, line.outcome) == (user.get_username(), "proxy", outcome)
        assert (line.kind, line.namespace, line.name) == (f"pods/{part}", "vision", "p")
    begun = AuditEntry.objects.get(outcome="failed")
    assert begun.cluster == "north" and begun.after["command"] == ["cat", "/etc/passwd"]


def test_a_resize_leaves_a_line_by_rest_and_by_kubectl_done_or_refused(job: Job) -> None:
    editor, viewer = person("eve", ("editor", "vision")), person("vic", ("viewer", "vision"))
    by_token(viewer, Scope()).post(f"/api/v1/jobs/{job.uid}/resize/", {"replicas": 2}, format="json")
    by_token(editor, Scope()).post(f"/api/v1/jobs/{job.uid}/resize/", {"replicas": 2}, format="json")
    body = json.dumps({"spec": {"replicas": 3}}).encode()
    Door(viewer).ask("PATCH", SCALE, body, "application/merge-patch+json")
    Door(editor).ask("PATCH", SCALE, body, "application/merge-patch+json")
    lines = [(each.actor, each.door) for each in AuditEntry.objects.order_by("pk")]
    assert lines == [("vic", "rest"), ("eve", "rest"), ("vic", "kubectl"), ("eve", "kubectl")]
