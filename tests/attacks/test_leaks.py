"""What one team reads never names the jobs of another: every operation of every API, by every role, in a fleet where the
jobs of two teams wait for, evict and block each other."""

import asyncio
import json
from itertools import product
from typing import Any

import pytest
from django.contrib import admin
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from deploy.config.kube import application
from fleet import consumers
from fleet.changes import journal
from fleet.models import Grant
from fleet.services.authorization import access
from jobs.models import Job
from quotas.models import QuotaGrant
from tests.attacks.kube_door import PROXY, Door, ask_as
from tests.attacks.two_teams import (
    H100,
    LOOKS,
    OURS,
    PRIVATE,
    ROLES,
    SECRET,
    THEIRS,
    bodies,
    looks,
    member_of,
    records_values,
    rest_paths,
    two_teams,
)
from tests.support import quotas
from tests.support.people import client_of, person

BACKEND = "fleet.api.sign_in.passwords.PasswordBackend"
NEED_A_MEMBER = ("/copy/", "/logs/", "/nodes/node/")
TABLE = b"application/json;as=Table;g=meta.k8s.io;v=v1"


@pytest.fixture(params=["ours", "theirs", "ours by model"])
def jobs(db: None, request: Any) -> tuple[Job, Job]:
    evicts, _, by_model = request.param.partition(" ")
    return two_teams(evicts=evicts, by_model=bool(by_model))


def around(content: bytes, word: str = SECRET) -> str:
    at = content.find(word.encode())
    return content[max(0, at - 120) : at + 60].decode() if at >= 0 else ""


def is_private(path: str) -> bool:
    """Whether even the namespaces of the other team are not for this answer."""
    return path.startswith(PRIVATE)


def rest(client: Any, jobs: tuple[Job, Job]) -> tuple[dict[str, str], set[str]]:
    """The requests whose answer names what is the other team's, with the text around; and those that were answered well."""
    leaks, answered = {}, set()
    client.raise_request_exception = False
    for method, plain in rest_paths(*jobs):
        for path, body in (
            [(look, None) for look in looks(plain)] if method == "GET" else product([plain], bodies(plain))
        ):
            with transaction.atomic():
                if isinstance(body, str):
                    answer = client.generic(method, path, body, content_type="application/yaml")
                else:
                    answer = getattr(client, method.lower())(path, body, format="json" if body is not None else None)
                content = b"".join(answer.streaming_content) if answer.streaming else answer.content
                transaction.set_rollback(True)
            assert answer.status_code < 500 or any(part in path for part in NEED_A_MEMBER), (method, path, content)
            if answer.status_code < 300:
                answered.add(f"{method} {path} {str(body or '')[:60]}")
            if text := around(content) or (is_private(path) and around(content, THEIRS[0])):
                leaks[f"{method} {path} {str(body or '')[:60]}"] = text
    return leaks, answered


@pytest.mark.django_db
@pytest.mark.parametrize("role", ROLES)
def test_rest_names_no_job_of_another_team(jobs: tuple[Job, Job], role: str) -> None:
    leaks, answered = rest(client_of(member_of(role)), jobs)
    assert len(answered) > (60 if ROLES[role] else 0)
    assert not leaks, "\n".join(f"{path}: ...{text}" for path, text in leaks.items())


@pytest.mark.django_db
def test_a_lead_of_a_node_that_is_not_there_and_of_no_role_reads_nothing() -> None:
    """The grant lets them ask the quota tree for changes; what the changes would do to jobs is not theirs to know."""
    mal = member_of("nobody")
    QuotaGrant.objects.create(user=mal, path="root/absent")
    leaks, answered = rest(client_of(mal), two_teams(evicts="ours"))
    assert not leaks, "\n".join(f"{path}: ...{text}" for path, text in leaks.items())
    assert any("/quota/tree/preview/" in each for each in answered), "the door lets them in"


NAMED = (
    "GET /api/v1/events/ ", "GET /api/v1/events/?cluster=north", "GET /api/v1/events/?queue=root/shared", "/explain/",
    "/quota/tree/preview/", "/whatif/ {'lose_cluster'", "/bulk/", "PATCH /api/v1/quota/tree/",
    "GET /api/v1/audit/ ", "GET /api/v1/attempts/ ", "GET /api/v1/attempts/?queue=root/shared",
    "GET /api/v1/attempts/?cluster=north", "GET /api/v1/series/?metric=waiting,used,starts&by=team",
    "GET /api/v1/gpu-hours/?by=team", "GET /api/v1/gpu-hours/?by=user", "GET /api/v1/gpu-hours/?by=user&form=csv",
    "GET /api/v1/jobs/export/?form=json", "GET /api/v1/jobs/?search=secret", "GET /api/v1/gpus/north/ ",
)  # fmt: skip
"""What shows the other team to who may see it: else the test above could not fail of it."""


@pytest.mark.django_db
def test_rest_names_them_to_who_may_see_every_team_and_answers_them_every_read(
    as_admin: Any, jobs: tuple[Job, Job]
) -> None:
    """An operation that refuses every request names nobody, whatever it would answer to a better one."""
    leaks, answered = rest(as_admin, jobs)
    assert [each for each in NAMED if each not in " ".join(leaks)] == []
    silent = {
        path
        for method, path in rest_paths(*jobs)
        if method == "GET" and not any(each.startswith((f"GET {path} ", f"GET {path}?")) for each in answered)
    }
    assert {path for path in silent if not path.endswith(NEED_A_MEMBER)} == set()
    assert {path for path in LOOKS for query in LOOKS[path] if f"GET {path}?{query} " not in answered} == set()
    secret = as_admin.get(f"/api/v1/jobs/{jobs[1].uid}/").json()
    assert SECRET in str(secret["preserved_state"])
    assert [copy["cluster"] for copy in secret["other_copies"]] == ["south"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path", ["series/?metric=max,used&by=queue", "series/?metric=max&by=queue&name=root/theirs", "lending/", "shares/"]
)
@pytest.mark.parametrize("led", ["root/ours", "root/absent", ""])
def test_no_report_names_a_queue_of_another_team(as_admin: Any, path: str, led: str) -> None:
    quotas.apply_tree(
        quotas.leaf("ours", OURS[0], **quotas.gpus(2, 4)), quotas.leaf("theirs", THEIRS[0], **quotas.gpus(2, 4))
    )
    records_values()
    mal = person("mal", (Grant.Role.EDITOR, OURS[0]))
    if led:
        QuotaGrant.objects.create(user=mal, path=led)
    answer = client_of(mal).get(f"/api/v1/{path}")
    assert answer.status_code == 200 and "root/theirs" not in answer.content.decode()
    assert "lending" in path or "root/theirs" in as_admin.get(f"/api/v1/{path}").content.decode()


@pytest.mark.django_db
def test_what_they_wait_for_is_by_model() -> None:
    """Else the tests above would say nothing of quotas by GPU model."""
    two_teams(evicts="ours", by_model=True)
    runs, takes = Job.objects.get(name=f"{SECRET}-runs"), Job.objects.get(name="mine-takes")
    assert runs.charge and runs.charge[H100] == 4
    assert takes.reason and SECRET in str(takes.reason["quota"]["from_jobs"])


def kube(user: Any) -> dict[str, str]:
    """The same of the Kubernetes-style API: every kind listed, printed and watched."""
    door, token = application(), access.mint(user, "t", life=None, now=timezone.now())[1]
    paths = []
    for kind in door.catalog:
        resource = kind.served.resource
        root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
        for where in ("", *(["namespaces/team-a/", "namespaces/team-a2/", "namespaces/team-b/"] * resource.namespaced)):
            paths.append(f"{root}/{where}{resource.plural}")

    async def ask_all() -> dict[str, str]:
        found = {}
        for path in paths:
            watch = f"{path}?watch=true&timeoutSeconds=1&resourceVersion=0"
            for asked, accept in ((path, b"application/json"), (path, TABLE)):
                if text := around(await ask_as(door, token, asked, accept)):
                    found[f"{asked} {accept.decode()}"] = text
        watches = [
            f"{path}?watch=true&timeoutSeconds=1&resourceVersion=0" for path in paths if "namespaces/" not in path
        ]
        for start in range(0, len(watches), 8):
            some = watches[start : start + 8]
            for watch, content in zip(
                some, await asyncio.gather(*(ask_as(door, token, each, b"") for each in some)), strict=True
            ):
                if text := around(content):
                    found[watch] = text
        return found

    return asyncio.run(ask_all())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("role", ROLES)
def test_kubectl_reads_no_job_of_another_team(role: str) -> None:
    two_teams(evicts="ours" if role != "editor" else "theirs")
    leaks = kube(member_of(role))
    assert not leaks, "\n".join(f"{path}: ...{text}" for path, text in leaks.items())


@pytest.mark.django_db(transaction=True)
def test_kubectl_reads_them_all_as_an_admin(admin: Any) -> None:
    two_teams(evicts="ours")
    leaks = " ".join(kube(admin))
    assert [
        kind
        for kind in ("pytorchjobs", "queueunits", "events", "pods", "works", "secrets", "watch=true")
        if kind not in leaks
    ] == []


WAYS = ("exec", "attach", "portforward", "log", "status", "ephemeralcontainers", "eviction", "binding", "")
"""Into a pod, or to what is said of it."""


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("role", ROLES)
def test_no_way_into_a_pod_tells_whether_another_team_has_it(role: str) -> None:
    """Nor at the member: the answer about a pod that is there is the answer about one that is not."""
    two_teams(evicts="ours")
    there, absent = f"{SECRET}-runs-master-0", f"{SECRET}-none-master-0"
    door = Door(member_of(role))

    def answers(namespace: str, name: str) -> dict[str, tuple[int, str]]:
        found = {}
        for root, way, method in product(("", PROXY), WAYS, ("GET", "POST")):
            path = "/".join(filter(None, (f"{root}/api/v1/namespaces/{namespace}/pods/{name}", way)))
            code, answer = door.exchange(method, path, query="command=true&container=x")
            found[f"{method} {path.replace(name, '')}"] = (code, answer.decode().replace(name, ""))
        return found

    for namespace in (THEIRS[0], OURS[0]):
        about = answers(namespace, there)
        assert about == answers(namespace, absent)
        assert {code for code, _ in about.values()} <= {400, 403, 404, 405, 503}


@pytest.mark.django_db
@pytest.mark.parametrize("role", ROLES)
def test_no_page_of_the_admin_names_a_job_of_another_team(jobs: tuple[Job, Job], role: str) -> None:
    client = Client()
    user = member_of(role)
    type(user).objects.filter(pk=user.pk).update(is_staff=True)
    client.force_login(user, BACKEND)
    shown = 0
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        pages = [reverse(f"{name}_changelist"), reverse(f"{name}_changelist") + f"?q={SECRET[:4]}"]
        pages += [reverse(f"{name}_change", args=[row.pk]) for row in model.objects.all()[:20]]  # type: ignore[attr-defined]
        for page in pages:
            answer = client.get(page, follow=True)
            assert SECRET not in answer.content.decode().replace(f"?q={SECRET[:4]}", ""), page
            shown += answer.status_code == 200 and not answer.redirect_chain
    assert shown > (20 if ROLES[role] else -1)


@pytest.mark.django_db
@pytest.mark.parametrize("role", [role for role, grants in ROLES.items() if grants])
def test_the_websocket_names_no_job_of_another_team(jobs: tuple[Job, Job], role: str) -> None:
    allowed = access.visible_namespaces(member_of(role))
    changes = [consumers._as_change(entry) for entry in journal.after(0)]
    heard = [change for change in changes if consumers._hears(allowed, change)]
    assert SECRET not in json.dumps(heard) and "mine" in json.dumps(heard) and SECRET in json.dumps(changes)


@pytest.mark.django_db
def test_nor_do_the_metrics(client: Client, jobs: tuple[Job, Job]) -> None:
    answer = client.get("/metrics")
    assert answer.status_code == 200 and SECRET not in answer.content.decode()
