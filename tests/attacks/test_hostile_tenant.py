"""A member of one team tries everything on what is another team's, by every API: each request is refused, or acts on nothing
that is not the caller's. What is tried is generated from what is served; each test says how many distinct requests that is."""

import asyncio
from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from deploy.config.kube import application
from fleet import consumers
from fleet.core.security.token_scopes import Scope
from fleet.models import Cluster, Grant, Hold, NamespacePolicy, Token
from fleet.services.authorization import access
from jobs.models import Attempt, Binding, Dependent, Job, Policy, Work
from quotas.models import Queue, QuotaGrant, QuotaTree
from tests.attacks.two_teams import OURS, SECRET, THEIRS, bodies, member_of, rest_paths, two_teams
from tests.cli.builders import Convoy
from tests.fleet.builders import by_token, status_of
from tests.support.people import person

pytestmark = pytest.mark.django_db
REFUSED = {400, 401, 403, 404, 405, 409, 415, 422}
READ_ONLY = Scope(verbs=frozenset({"read"}), namespaces=frozenset({OURS[0]}))
FOR_JOBS = Scope(kinds=frozenset({"Job"}), namespaces=frozenset(OURS))
PROXY = "/apis/cluster.karmada.io/v1alpha1/clusters/north/proxy"


def theirs() -> list[Any]:
    """Every row that is not the caller's to change."""
    of_a_namespace = {
        Job: "namespace", Policy: "namespace", Dependent: "namespace", Work: "namespace", Binding: "job__namespace",
        Attempt: "job__namespace",
    }  # fmt: skip
    rows = [
        list(model.objects.filter(**{f"{field}__in": THEIRS}).order_by("pk").values())  # type: ignore[attr-defined]
        for model, field in of_a_namespace.items()
    ]
    whole = (Cluster, Grant, Hold, NamespacePolicy, Queue, QuotaGrant, QuotaTree)
    rows += [list(model.objects.order_by("pk").values()) for model in whole]  # type: ignore[attr-defined]
    users = get_user_model().objects.order_by("pk").values("username", "password", "is_active", "is_superuser")
    return [*rows, list(users), list(Token.objects.exclude(user__username="mal").order_by("pk").values())]


@pytest.fixture
def secret(db: None) -> Job:
    """A running job of the other team."""
    return two_teams(evicts="theirs")[1]


CALLERS = {
    "nobody": ("nobody", Scope()), "viewer": ("viewer", Scope()), "editor": ("editor", Scope()),
    "holder of a token that reads": ("editor", READ_ONLY), "holder of a token for jobs": ("editor", FOR_JOBS),
}  # fmt: skip


def in_earnest(path: str) -> list[Any]:
    """Bodies that act on the jobs of all teams, where others of this suite only preview it."""
    return [{**body, "preview": False} for body in bodies(path)] if path == "/api/v1/jobs/bulk/" else []


@pytest.mark.parametrize("who", CALLERS)
def test_nothing_of_another_team_is_reached_by_rest(secret: Job, who: str) -> None:
    role, scope = CALLERS[who]
    client, tried = by_token(member_of(role), scope), set()
    client.raise_request_exception = False
    victim, before = person("victim", ("viewer", THEIRS[0])), None
    access.mint(victim, "t", life=None, now=timezone.now())
    before = theirs()
    for method, path in rest_paths(secret):
        path = path.replace("/users/mal/", "/users/victim/")
        for body in [None] if method == "GET" else [*bodies(path), *in_earnest(path)]:
            tried.add((method, path, str(body)))
            with transaction.atomic():
                if isinstance(body, str):
                    answer = client.generic(method, path, body, content_type="application/yaml")
                else:
                    answer = getattr(client, method.lower())(path, body, format="json" if body is not None else None)
                assert answer.status_code in REFUSED or answer.status_code < 300, (method, path, answer.status_code)
                assert theirs() == before, (method, path, body)
                transaction.set_rollback(True)
            if str(secret.uid) in path:
                assert answer.status_code in (403, 404), (method, path, answer.status_code)
    assert len(tried) >= 90


def test_who_edits_one_team_and_reads_another_acts_on_the_first_alone_in_bulk(secret: Job) -> None:
    path, client = "/api/v1/jobs/bulk/", by_token(person("mal", ("editor", OURS[0]), ("viewer", THEIRS[0])), Scope())
    before = theirs()
    for body in in_earnest(path):
        with transaction.atomic():
            answer = client.post(path, body, format="json")
            assert answer.status_code == 200 and answer.json()["refused"] > 0, answer.content
            assert theirs() == before, body
            transaction.set_rollback(True)


def kube_requests() -> Iterator[tuple[str, str]]:
    """(method, path) of every verb of every kind in the other team's namespace, or of what is of the whole fleet."""
    one = {"get": "GET", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
    many = {"list": "GET", "create": "POST", "deletecollection": "DELETE"}
    for kind in application().catalog:
        resource = kind.served.resource
        root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
        root += f"/namespaces/{THEIRS[0]}/{resource.plural}" if resource.namespaced else f"/{resource.plural}"
        for verb in kind.verbs:
            if verb in one:
                yield one[verb], f"{root}/{SECRET}-runs"
            elif verb in many:
                yield many[verb], root
        yield from (("GET", f"{root}/{SECRET}-runs/{part}") for part in kind.served.subresources)


OPEN_KINDS = {
    "clusters", "nodes", "namespaces", "clusterpropagationpolicies", "clusteroverridepolicies", "clustertrainingruntimes",
    "elasticquotatrees", "queues", "priorityclasses",
}  # fmt: skip
"""What everybody reads who has a role; nobody of a team writes it."""


def asked(token: str, requests: Iterable[tuple[str, str]], body: bytes = b"{}") -> list[int]:
    door = application()

    async def ask_all() -> list[int]:
        return [await status_of(door, token, method, path, body) for method, path in requests]

    answers = asyncio.run(ask_all())
    connection.close()
    return answers


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("who", CALLERS)
def test_nothing_of_another_team_is_reached_by_kubectl(who: str) -> None:
    two_teams(evicts="theirs")
    role, scope = CALLERS[who]
    token, before, requests = by_token(member_of(role), scope).text, theirs(), sorted(set(kube_requests()))
    for (method, path), status in zip(requests, asked(token, requests), strict=True):
        is_open = method == "GET" and any(f"/{plural}" in path for plural in OPEN_KINDS) and "/proxy" not in path
        metrics = "/metrics.k8s.io/" in path
        assert status in REFUSED or (status < 300 and is_open), (method, path, status)
        assert status in (403, 404, 405) or is_open or metrics, (method, path, status)
    assert len(requests) >= 150 and theirs() == before


def proxy_requests() -> Iterator[tuple[str, str]]:
    plurals = (
        "api/v1/{}/pods",
        "api/v1/{}/secrets",
        "apis/kubeflow.org/v1/{}/pytorchjobs",
        "apis/apps/v1/{}/deployments",
    )
    namespaces = [f"namespaces/{each}" for each in (THEIRS[0], "kube-system")]
    for method, path, namespace in product(("POST", "PUT", "PATCH", "DELETE"), plurals, namespaces):
        yield method, f"{PROXY}/{path.format(namespace)}/x"
    for path, namespace in product(plurals, namespaces):
        yield "GET", f"{PROXY}/{path.format(namespace)}"
    own = f"{PROXY}/api/v1/namespaces/{OURS[0]}"
    for path in (
        f"{own}/../{THEIRS[0]}/pods", f"{own}/%2e%2e/{THEIRS[0]}/pods", f"{own}%2f..%2f{THEIRS[0]}/pods", f"{own}//pods",
        f"{own}/pods/x/exec", f"{own}/pods/x/portforward", f"{own}/pods/x/attach", f"{own}/services/x/proxy",
        f"{own}/serviceaccounts/default/token", f"{PROXY}/api/v1/watch/namespaces/{THEIRS[0]}/pods", f"{PROXY}/metrics",
        f"{PROXY}/api/v1/proxy/namespaces/{THEIRS[0]}/services/x", f"{PROXY}/api/v1/secrets", f"{PROXY}/logs/",
        f"{PROXY}/api/v1/nodes/x/proxy/pods", f"{PROXY}/debug/pprof/", f"{PROXY}/api/v1/pods", f"{PROXY}/api/v1/events",
    ):  # fmt: skip
        yield "GET", path
        yield "POST", path


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("who", CALLERS)
def test_nothing_of_another_team_is_reached_through_the_proxy(who: str) -> None:
    two_teams(evicts="theirs")
    role, scope = CALLERS[who]
    token, requests = by_token(member_of(role), scope).text, sorted(set(proxy_requests()))
    answers = dict(zip(requests, asked(token, requests), strict=True))
    assert not {request: status for request, status in answers.items() if status not in (400, 403, 404, 422)}
    assert len(requests) >= 70


@pytest.mark.parametrize("role", ["nobody", "viewer", "editor", "lead"])
def test_nothing_of_another_team_is_reached_by_the_admin(secret: Job, role: str) -> None:
    user, client, tried = member_of(role), Client(), 0
    QuotaGrant.objects.update(path="root/borrower")
    get_user_model().objects.filter(pk=user.pk).update(is_staff=True)
    client.force_login(user, "fleet.api.sign_in.passwords.PasswordBackend")
    access.mint(person("victim"), "t", life=None, now=timezone.now())
    if role != "nobody":
        assert client.get(reverse("admin:jobs_job_changelist")).status_code == 200, "signed in"
    before = theirs()
    for model, model_admin in admin.site._registry.items():
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        keys = list(model.objects.order_by("pk").values_list("pk", flat=True))  # type: ignore[attr-defined]
        pages: list[tuple[str, dict[str, Any]]] = [(reverse(f"{name}_add"), {})]
        for key in keys[:3]:
            pages += [(reverse(f"{name}_change", args=[key]), {"name": "x", "is_superuser": "on"})]
            pages += [(reverse(f"{name}_delete", args=[key]), {"post": "yes"})]
        for action in ("delete_selected", *(model_admin.actions or ())):
            pages.append(
                (
                    reverse(f"{name}_changelist"),
                    {"action": action, "_selected_action": _theirs(model, keys), "post": "yes"},
                )
            )
        for page, form in pages:
            with transaction.atomic():
                status = client.post(page, form).status_code
                assert status in (200, 302, 403) and theirs() == before, (page, form, status)
                transaction.set_rollback(True)
        tried += len(pages)
    assert tried >= 80


def _theirs(model: Any, keys: list[Any]) -> list[Any]:
    if model is Job:
        return list(Job.objects.filter(namespace__in=THEIRS).values_list("pk", flat=True))
    return list(Queue.objects.filter(path="root/shared").values_list("pk", flat=True)) if model is Queue else keys


def test_the_websocket_lets_in_nobody_whose_credentials_do_not_read() -> None:
    mal = person("mal", (Grant.Role.EDITOR, OURS[0]))
    now = timezone.now()
    revoked, expired, disabled = (access.mint(mal, name, life=None, now=now) for name in ("a", "b", "c"))
    access.revoke(mal, revoked[0].pk, now=now)
    Token.objects.filter(pk=expired[0].pk).update(expires_at=now - timedelta(seconds=1))
    Token.objects.filter(pk=disabled[0].pk).update(user=person("gone", (Grant.Role.VIEWER, "")))
    get_user_model().objects.filter(username="gone").update(is_active=False)
    texts = [
        "", "x", "cvy_", "cvy_" + "x" * 43, "cvy_" + "x" * 10_000, "cvy_\u0661", revoked[1], expired[1], disabled[1],
        access.mint(person("nobody"), "t", life=None, now=now)[1],
        by_token(mal, Scope(verbs=frozenset({"apply"}))).text, by_token(mal, Scope(kinds=frozenset({"Job"}))).text,
    ]  # fmt: skip
    for text in texts:
        for scope in (
            {"headers": [(b"authorization", b"Bearer " + text.encode())], "subprotocols": []},
            {"headers": [], "subprotocols": [consumers.PLAIN, consumers.BEARER + text]},
        ):
            assert consumers._user(scope) == (None, frozenset()), text
    good = {"headers": [(b"authorization", b"Bearer " + by_token(mal, Scope()).text.encode())]}
    assert consumers._user(good)[1] == frozenset({OURS[0]})


@pytest.mark.django_db(transaction=True)
def test_nothing_of_another_team_is_reached_by_the_command_line(live_server: Any, tmp_path: Path) -> None:
    two_teams(evicts="theirs")
    convoy, job = Convoy(tmp_path, live_server.url), f"{SECRET}-runs"
    convoy.env["CONVOY_TOKEN"] = by_token(member_of("editor"), Scope()).text
    (tmp_path / "theirs.yaml").write_text(
        f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, namespace: {THEIRS[0]}}}}}"
    )
    before = theirs()
    for words in (
        f"describe pytorchjob {job} -n {THEIRS[0]}", f"suspend {job} -n {THEIRS[0]}", f"logs {job} -n {THEIRS[0]}",
        f"explain {job} -n {THEIRS[0]}", f"delete pytorchjob {job} -n {THEIRS[0]}", "cluster cordon north",
        "cluster impersonate north --off", "cluster detach north --yes", f"apply -f {tmp_path}/theirs.yaml", "user list",
        "audit list",
        "rotate-keys",
    ):  # fmt: skip
        said = convoy(*words.split())
        assert said.code not in (0, -11) and "Traceback" not in said.err, (words, said)
        assert SECRET not in said.out, (words, said)
    assert SECRET not in convoy("get", "jobs", "-A").out and theirs() == before
