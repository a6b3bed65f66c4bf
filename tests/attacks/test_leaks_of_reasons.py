"""A job that waits for quota which jobs of other teams give back: their names are kept with it, and no answer to its own team
has them: the REST API, the Kubernetes-style API, the websocket, the command line, the console's data, exports and the admin."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin as site
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from deploy.config.kube import application
from fleet import consumers
from fleet.changes import journal
from fleet.services.authorization import access
from jobs.models import Job
from tests.attacks.kube_door import ask_as
from tests.attacks.two_teams import OURS, SECRET, member_of, two_teams
from tests.cli.builders import Convoy
from tests.support.people import client_of

VICTIM = f"team-b2/{SECRET}-borrows"
BACKEND = "fleet.api.sign_in.passwords.PasswordBackend"
TABLE = b"application/json;as=Table;g=meta.k8s.io;v=v1"
OF_ONE = (
    "",
    "explain/",
    "events/",
    "timeline/",
    "runtime/",
    "stacks/",
    "goodput/",
    "attempts/",
    "pods/",
    "copy/",
    "logs/",
)
OF_ALL = (
    "jobs/", "jobs/export/", "jobs/export/?form=json", "jobs/groups/?by=queue", "jobs/?ordering=state", "queueunits/",
    "events/", "quota/tree/", "queues/",
)  # fmt: skip
COMMANDS = (
    "get jobs -A", "get jobs -A -o wide", "get jobs -A -o json", "get jobs -A -o yaml", "get jobs -A -o name",
    "describe pytorchjob mine-takes -n team-a2", "explain mine-takes -n team-a2",
    "queue tree", "queue list", "queue list -o json",
)  # fmt: skip


@pytest.fixture
def waiting(transactional_db: None) -> Iterator[Job]:
    two_teams(evicts="ours")
    job = Job.objects.get(name="mine-takes")
    assert (job.reason or {})["quota"]["from_jobs"] == [VICTIM], "else nothing could leak here"
    yield job


def test_rest_hides_the_names_and_shows_them_to_who_may_read_them(waiting: Job, as_admin: Any) -> None:
    one = f"/api/v1/jobs/{waiting.uid}/"
    paths = [*(one + part for part in OF_ONE), *(f"/api/v1/{path}" for path in OF_ALL)]
    for role in ("viewer", "editor", "lead"):
        client = client_of(member_of(role, role))
        for path in paths:
            answer = client.get(path)
            content = b"".join(answer.streaming_content) if answer.streaming else answer.content
            assert SECRET not in content.decode(), (role, path)
        assert client.get(one).json()["reason"]["quota"]["from_jobs"] == [""], "one, whose name is hidden"
    assert as_admin.get(one).json()["reason"]["quota"]["from_jobs"] == [VICTIM]


def test_kubectl_hides_the_names(waiting: Job) -> None:
    token = access.mint(member_of("editor"), "t", life=None, now=timezone.now())[1]
    roots = (
        "/apis/kubeflow.org/v1/namespaces/team-a2/pytorchjobs",
        "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/team-a2/queueunits",
        "/api/v1/namespaces/team-a2/events",
    )
    paths = [
        *roots,
        f"{roots[0]}/mine-takes",
        *(f"{root}?watch=true&timeoutSeconds=1&resourceVersion=0" for root in roots),
    ]
    door = application()

    async def ask_all() -> list[bytes]:
        asked = [(path, accept) for path in paths for accept in (b"application/json", b"application/yaml", TABLE)]
        return await asyncio.gather(*(ask_as(door, token, path, accept) for path, accept in asked))

    answers = b"".join(asyncio.run(ask_all())).decode()
    assert SECRET not in answers and "WaitingForReclaim" in answers and "a job of another team" in answers


def test_the_websocket_hides_the_names(waiting: Job) -> None:
    allowed = access.visible_namespaces(member_of("editor"))
    changes = [consumers._as_change(entry) for entry in journal.after(0)]
    heard = json.dumps([change for change in changes if consumers._hears(allowed, change)])
    assert SECRET not in heard and "mine-takes" in heard


def test_the_command_line_hides_the_names(waiting: Job, live_server: Any, tmp_path: Path, admin: Any) -> None:
    convoy = Convoy(tmp_path, live_server.url)
    convoy.env["CONVOY_TOKEN"] = access.mint(member_of("editor"), "t", life=None, now=timezone.now())[1]
    for words in COMMANDS:
        output = convoy(*words.split())
        assert output.code == 0 and SECRET not in output.out + output.err, (words, output)
    convoy.env["CONVOY_TOKEN"] = access.mint(admin, "t", life=None, now=timezone.now())[1]
    assert VICTIM in convoy(*["get", "jobs", "-A", "-o", "json"]).out


def test_the_admin_s_pages_hide_the_names(waiting: Job) -> None:
    user = member_of("editor")
    type(user).objects.filter(pk=user.pk).update(is_staff=True)
    client = Client()
    client.force_login(user, BACKEND)
    assert Job in site.site._registry
    for page in (reverse("admin:jobs_job_changelist"), reverse("admin:jobs_job_change", args=[waiting.pk])):
        answer = client.get(page)
        assert answer.status_code == 200 and SECRET not in answer.content.decode(), page


def test_nor_does_the_row_name_jobs_in_the_text_that_all_of_its_namespace_read(waiting: Job) -> None:
    assert waiting.namespace in OURS and SECRET not in waiting.reason["message"]
