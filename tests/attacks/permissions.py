"""What is asked of each API, by each role, for the table of permissions in docs/permissions.md: generated from what is served.

A verdict is whether the caller is let in: whether the object is there, or the body any good, is asked later.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.http import HttpRequest
from django.test import RequestFactory
from django.utils import timezone
from rest_framework.test import APIClient

from fleet import consumers
from fleet.models import AuditEntry, Cluster, Grant, SavedView, Token
from fleet.services.auditing import audit
from fleet.services.authorization import access, namespace_policies
from jobs.models import Binding, Dependent, Incident, Job, Policy
from quotas.models import Queue, QuotaGrant, QuotaRevision
from tests.attacks.kube_door import JOB
from tests.attacks.two_teams import an_incident, submitted
from tests.fleet.api.builders import ARGUMENTS, filled, routes
from tests.fleet.builders import status_of
from tests.support import quotas
from tests.support.people import client_of, person, roles_in

OWN, OTHER = "vision", "speech"
_ORDER = ("nobody", "viewer", "lead", "editor", "mixed", "reader", "writer", "quotas", "admin")
ROLES = {role: {**roles_in(OWN), "mixed": (Grant.Role.EDITOR, OWN)}[role] for role in _ORDER}
"""``mixed`` is a viewer of the other namespace as well, who sees it and still writes in one alone."""
PROXY = "/apis/cluster.karmada.io/v1alpha1/clusters/absent/proxy"
REFUSED = (401, 403)
OF_NAMESPACES = ("incidents", "jobs", "policies", "dependents", "queueunits", "namespaces", "queues", "tokens")
"""What REST routes begin with whose arguments name what is in a namespace, or somebody's."""
_NUMBER = re.compile(r"\d+")
"""Of a row: an answer may repeat what the path named."""
Answer = tuple[int, str]
Rows = dict[str, list[str]]
"""What is asked -> the verdict for each role."""


def user_of(role: str) -> Any:
    held = ROLES[role]
    user = person(role, *([held] if held else []))
    if role == "lead":
        QuotaGrant.objects.create(user=user, path=f"root/{OWN}")
    if role == "mixed":
        Grant.objects.create(user=user, role=Grant.Role.VIEWER, namespace=OTHER)
    return user


def marker(namespace: str) -> str:
    return f"marker-{namespace}"


def fill_fleet(north: Cluster) -> None:
    """One of everything in both namespaces."""
    quotas.apply_tree(*(quotas.leaf(each, each, **quotas.gpus(0, 4)) for each in (OWN, OTHER)))
    for namespace in (OWN, OTHER):
        job = submitted(namespace, marker(namespace))
        an_incident(job)
        Binding.objects.create(job=job, cluster=north, attempt=1, scheduled_at=timezone.now())
        namespace_policies.save(namespace, {"pod_security": "baseline"}, now=timezone.now())
    victim = person("victim", (Grant.Role.VIEWER, OTHER))
    QuotaGrant.objects.create(user=victim, path=f"root/{OTHER}")
    access.mint(victim, "t", life=None, now=timezone.now())
    SavedView.objects.create(user=victim, list="jobs", name="v", search="", saved_at=timezone.now())
    audit.note("victim", door="rest", address="", request="", verb="mint", kind="Token", name="t")


def joined(reached: Mapping[str, bool]) -> str:
    """One word for both namespaces: ``all``, ``own``, ``other`` or ``-``."""
    return {(True, True): "all", (True, False): "own", (False, True): "other", (False, False): "-"}[
        reached[OWN], reached[OTHER]
    ]


# REST


def rest_rows() -> list[tuple[str, str]]:
    return sorted(routes(), key=lambda each: (shown(each[1]), each[0]))


def rest(roles: Iterable[str]) -> Rows:
    clients = {role: (APIClient(), None) if role == "stranger" else client_in(role) for role in roles}
    return {
        f"{method.upper()} {shown(route)}": [_rest_verdict(method, route, *clients[role]) for role in clients]
        for method, route in rest_rows()
    }


def client_in(role: str) -> tuple[APIClient, Any]:
    user = user_of(role)
    return client_of(user), user


def shown(route: str) -> str:
    return "/api/v1/" + filled(route, {name: f"{{{name}}}" for name in ARGUMENTS})


def _rest_verdict(method: str, route: str, client: APIClient, user: Any) -> str:
    path = shown(route)
    is_of_a_namespace = "{" in path and route.startswith(OF_NAMESPACES)
    if is_of_a_namespace or _body(path, OWN) != _body(path, OTHER):
        answers = {each: _ask(client, method, route, _arguments(route, each, user), each) for each in (OWN, OTHER)}
        return joined({each: _is_in(answers[each], each, client, method, route) for each in answers})
    status, text = answer = _ask(client, method, route, _arguments(route, OWN, user), OWN)
    if not _is_in(answer, OWN, client, method, route):
        return "-"
    shows = {each: method == "get" and marker(each) in text for each in (OWN, OTHER)}
    return joined(shows) if any(shows.values()) else "yes"


def answers_alike(client: APIClient, method: str, route: str, namespace: str, user: Any) -> tuple[Answer, Answer]:
    """About what is in the namespace, and about what is nowhere; without the numbers that the paths name."""
    about = _ask(client, method, route, _arguments(route, namespace, user), namespace)
    absent = _ask(client, method, route, ARGUMENTS, namespace)
    return (about[0], _NUMBER.sub("", about[1])), (absent[0], _NUMBER.sub("", absent[1]))


def _is_in(answer: tuple[int, str], namespace: str, client: APIClient, method: str, route: str) -> bool:
    """What is hidden is answered as what is not there."""
    status, text = answer
    if status == 404:
        absent = _ask(client, method, route, ARGUMENTS, namespace)
        return (absent[0], _NUMBER.sub("", absent[1])) != (status, _NUMBER.sub("", text))
    would_act = not route.startswith("jobs/bulk") or '"done":1' in text
    return status not in REFUSED and would_act


def _ask(client: APIClient, method: str, route: str, arguments: Mapping[str, str], namespace: str) -> tuple[int, str]:
    client.raise_request_exception = False
    with transaction.atomic():
        path, body = "/api/v1/" + filled(route, arguments), _body(shown(route), namespace)
        answer = client.get(path) if method == "get" else getattr(client, method)(path, body, format="json")
        content = b"".join(answer.streaming_content) if answer.streaming else answer.content
        transaction.set_rollback(True)
    return answer.status_code, content.decode()


def _arguments(route: str, namespace: str, user: Any) -> dict[str, str]:
    rows: dict[str, Callable[[], Any]] = {
        "policies": lambda: Policy.objects.get(namespace=namespace).uid,
        "dependents": lambda: Dependent.objects.get(namespace=namespace).uid,
        "incidents": lambda: Incident.objects.get(attempts__job__namespace=namespace).uid,
        "jobs": lambda: Job.objects.get(namespace=namespace).uid,
        "queueunits": lambda: Job.objects.get(namespace=namespace).uid,
        "grants": lambda: Grant.objects.get(user__username="victim").pk,
        "leads": lambda: QuotaGrant.objects.get(user__username="victim").pk,
        "audit": lambda: AuditEntry.objects.earliest("pk").pk,
        "quota": lambda: QuotaRevision.objects.earliest("pk").generation,
        "tokens": lambda: _token(user if namespace == OWN else None),
        "users": lambda: _token(None),
        "second-factor": lambda: 1,
        "views": lambda: SavedView.objects.get(user__username="victim").pk,
    }
    of_route = rows.get(route.split("/")[0], lambda: "")
    names = {"namespaces": namespace, "queues": _queue(namespace)}
    identity = str(of_route()) if "<id>" in route or "<pk>" in route else ""
    return {
        "id": identity, "pk": identity, "name": names.get(route.split("/")[0], "north"), "node": "n1", "username": "victim",
    }  # fmt: skip


def _token(user: Any) -> int:
    tokens = Token.objects.filter(user=user) if user is not None else Token.objects.filter(user__username="victim")
    return tokens.earliest("pk").pk


def _queue(namespace: str) -> str:
    return Queue.objects.get(path=f"root/{namespace}").name


def _body(path: str, namespace: str) -> Any:
    job = {**JOB, "metadata": {"name": marker(namespace), "namespace": namespace}}
    match path.removeprefix("/api/v1/"):
        case "apply/" | "apply/preview/" | "delete/" | "quota/dry-run/":
            return job
        case "whatif/":
            return {"add_job": job}
        case "jobs/bulk/":
            ids = [str(uid) for uid in Job.objects.filter(namespace=namespace).values_list("uid", flat=True)]
            return {"action": "suspend", "ids": ids, "preview": True}
        case "queueunits/{id}/move/":
            return {"queue": _queue(namespace)}
    return {}


# The Kubernetes-style API and the proxy


def kube_rows(catalog: Iterable[Any]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """(kind and verb, method, path by namespace or by the empty word)."""
    one = {"get": "GET", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
    many = {"list": "GET", "create": "POST", "deletecollection": "DELETE"}
    for kind in catalog:
        resource = kind.served.resource
        root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
        where = (OWN, OTHER) if resource.namespaced else ("",)
        homes = {each: f"{root}/{f'namespaces/{each}/' if each else ''}{resource.plural}" for each in where}
        name = f"{resource.plural}.{resource.group}".rstrip(".")
        if resource.plural == "namespaces":
            homes = {"": homes[""]}
        for verb in sorted(set(kind.verbs) & (one.keys() | many.keys())):
            end = "/absent" if verb in one else ""
            yield f"{verb} {name}", one.get(verb) or many[verb], {each: home + end for each, home in homes.items()}
        for part in sorted(kind.served.subresources):
            paths = {each: f"{home}/absent/{part}" for each, home in homes.items()}
            for verb, method in (("get", "GET"), ("create", "POST"), ("patch", "PATCH")):
                yield f"{verb} {name}/{part}", method, paths


RESOURCES = (
    "api/v1/{}pods", "api/v1/{}pods/x/status", "api/v1/{}pods/x/ephemeralcontainers", "api/v1/{}pods/x/binding",
    "api/v1/{}pods/x/eviction", "api/v1/{}pods/x/log", "api/v1/{}pods/x/exec", "api/v1/{}pods/x/attach",
    "api/v1/{}pods/x/portforward", "api/v1/{}services/x/proxy", "api/v1/{}configmaps/x", "api/v1/{}secrets/x",
    "api/v1/{}services/x", "api/v1/{}serviceaccounts/x", "api/v1/{}serviceaccounts/x/token", "api/v1/{}resourcequotas/x",
    "api/v1/{}limitranges/x", "api/v1/{}bindings", "apis/apps/v1/{}deployments/x", "apis/apps/v1/{}deployments/x/scale",
    "apis/kubeflow.org/v1/{}pytorchjobs/x", "apis/kubeflow.org/v1/{}pytorchjobs/x/status", "apis/example.com/v1/{}things/x",
    "apis/rbac.authorization.k8s.io/v1/{}roles/x", "apis/rbac.authorization.k8s.io/v1/{}rolebindings/x",
    "apis/authorization.k8s.io/v1/{}localsubjectaccessreviews", "apis/metrics.k8s.io/v1beta1/{}pods",
)  # fmt: skip
SHARED = (
    "version", "api/v1/pods", "api/v1/secrets", "api/v1/nodes/x", "api/v1/nodes/x/proxy", "api/v1/namespaces/x",
    "api/v1/namespaces/x/finalize", "api/v1/persistentvolumes/x", "api/v1/namespaces/kube-system/pods",
    "api/v1/namespaces/kube-system/secrets", "apis/rbac.authorization.k8s.io/v1/clusterroles/x",
    "apis/certificates.k8s.io/v1/certificatesigningrequests/x", "apis/apiextensions.k8s.io/v1/customresourcedefinitions/x",
    "apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/x", "apis/authentication.k8s.io/v1/tokenreviews",
    "metrics", "logs/", "debug/pprof/",
)  # fmt: skip


def proxy_rows() -> Iterator[tuple[str, str, dict[str, str]]]:
    for resource, method in product(RESOURCES, ("GET", "POST", "PUT", "PATCH", "DELETE")):
        paths = {each: f"{PROXY}/{resource.format(f'namespaces/{each}/')}" for each in (OWN, OTHER)}
        yield f"{method} {resource.format('')}", method, paths
    for path, method in product(SHARED, ("GET", "POST", "PUT", "PATCH", "DELETE")):
        yield f"{method} {path} (of the cluster)", method, {"": f"{PROXY}/{path}"}


def at_kube(door: Any, roles: Iterable[str], asked: Iterable[tuple[str, str, dict[str, str]]]) -> Rows:
    rows, columns = list(asked), []

    async def ask_all(token: str) -> list[str]:
        return [
            _kube_verdict({each: await status_of(door, token, method, path) for each, path in paths.items()})
            for _, method, paths in rows
        ]

    for role in roles:
        token = "" if role == "stranger" else access.mint(user_of(role), "t", life=None, now=timezone.now())[1]
        columns.append(asyncio.run(ask_all(token)))
    return {row[0]: list(verdicts) for row, verdicts in zip(rows, zip(*columns, strict=True), strict=True)}


def _kube_verdict(statuses: Mapping[str, int]) -> str:
    is_in = {namespace: status not in (*REFUSED, 405) for namespace, status in statuses.items()}
    return joined(is_in) if OWN in is_in else "yes" if is_in[""] else "-"


# The websocket and the admin


def websocket(roles: Iterable[str]) -> Rows:
    rows: Rows = {f"changes of {kind}": [] for kind in ("Job", "Cluster", "Queue")}
    for role in roles:
        token = "" if role == "stranger" else access.mint(user_of(role), "t", life=None, now=timezone.now())[1]
        user, allowed = consumers._user(
            {"headers": [(b"authorization", f"Bearer {token}".encode())], "subprotocols": []}
        )
        for kind in ("Job", "Cluster", "Queue"):
            hears = {
                namespace: user is not None and consumers._hears(allowed, _change(kind, namespace))
                for namespace in (OWN, OTHER)
            }
            rows[f"changes of {kind}"].append(joined(hears))
    return rows


def _change(kind: str, namespace: str) -> Any:
    where = {"Job": namespace, "Queue": "kube-queue", "Cluster": ""}[kind]
    return {"kind": kind, "namespace": where, "name": "x", "id": "x", "action": "changed", "version": 1}


def in_admin(roles: Iterable[str]) -> Rows:
    """What the pages of each model ask, for a user with staff status; their forms are attacked elsewhere."""
    requests = [_admin_request(role) for role in roles]
    return {
        f"{act} {model._meta.label}": [
            "yes" if admin.site.has_permission(request) and getattr(pages, f"has_{act}_permission")(request) else "-"
            for request in requests
        ]
        for model, pages in sorted(admin.site._registry.items(), key=lambda each: each[0]._meta.label)
        for act in ("view", "add", "change", "delete")
    }


def _admin_request(role: str) -> HttpRequest:
    request = RequestFactory().get("/admin/")
    request.user = AnonymousUser() if role == "stranger" else user_of(role)
    request.user.is_staff = role != "stranger"
    return request
