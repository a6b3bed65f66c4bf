"""Every role × method × resource × own, other, all and closed namespaces through the proxy, against rules written anew.

The member asked for does not exist, so that whoever is let in is answered 404 and everyone else 403.
"""

import asyncio
from itertools import product

import pytest
from django.utils import timezone

from fleet.core.security.token_scopes import Scope
from fleet.models import Grant
from fleet.services.authorization import access
from quotas.models import QuotaGrant
from tests.fleet.builders import status_of
from tests.support.people import person, roles_in

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = "/apis/cluster.karmada.io/v1alpha1/clusters/absent/proxy"
OWN, OTHER, CLOSED = "vision", "speech", "kube-system"
ROLES = roles_in(OWN)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
CORE = ("configmaps", "secrets", "services", "serviceaccounts", "resourcequotas")
GROUPS = {"rbac.authorization.k8s.io/v1": ("roles",), "kubeflow.org/v1": ("pytorchjobs",)}
WITHOUT_NAMESPACE = ("nodes", "persistentvolumes", "customresourcedefinitions", "clusterroles")
SHOWN_TO_ALL = {"nodes", "persistentvolumes", "customresourcedefinitions"}
HUSHED = {"configmaps", "secrets"}
FOR_ADMINS = {"roles", "clusterroles", "resourcequotas"}
TUNNELS = ("pods/x/exec", "pods/x/portforward", "pods/x/attach", "services/x/proxy", "serviceaccounts/x/token")


def paths() -> list[tuple[str, str, str]]:
    """(resource, namespace or empty for all, path)."""
    of_core = [("api/v1", resource) for resource in CORE]
    of_groups = [(f"apis/{group}", resource) for group, listed in GROUPS.items() for resource in listed]
    found = []
    for (root, resource), namespace in product([*of_core, *of_groups], (OWN, OTHER, CLOSED, "")):
        where = f"namespaces/{namespace}/" if namespace else ""
        found.append((resource, namespace, f"{ROOT}/{root}/{where}{resource}{'/x' if namespace else ''}"))
    return [*found, *((resource, "", f"{ROOT}/api/v1/{resource}/x") for resource in WITHOUT_NAMESPACE)]


def allowed(who: str, method: str, resource: str, namespace: str) -> bool:
    """The rules as the operations manual says them; written without a look at `fleet.services.members.proxying`."""
    held = ROLES[who]
    if held is None:
        return False
    role, where = held
    if role == Grant.Role.FLEET_ADMIN:
        return True
    edits = role == Grant.Role.EDITOR and where in ("", namespace) and namespace not in ("", CLOSED)
    if method != "GET":
        return edits and resource not in FOR_ADMINS
    if resource in SHOWN_TO_ALL:
        return True
    return edits if resource in HUSHED else where == "" or where == namespace


def token_of(who: str, scope: Scope | None = None) -> str:
    held = ROLES[who]
    user = person(who, *([held] if held else []))
    if who == "lead":
        QuotaGrant.objects.create(user=user, path="root")
    return access.mint(user, "test", life=None, now=timezone.now(), scope=scope)[1]


def statuses(token: str, requests: list[tuple[str, str]]) -> list[int]:
    from deploy.config.kube import application

    door = application()

    async def ask_all() -> list[int]:
        return [await status_of(door, token, method, path) for method, path in requests]

    return asyncio.run(ask_all())


@pytest.mark.parametrize("who", ROLES)
def test_the_proxy_lets_in_whom_the_rules_do(who):
    asked = [(method, *path) for method, path in product(METHODS, paths())]
    answers = statuses(token_of(who), [(method, path) for method, _, _, path in asked])
    wrong = [
        (method, path, status)
        for (method, resource, namespace, path), status in zip(asked, answers, strict=True)
        if (status != 403) != allowed(who, method, resource, namespace)
    ]
    assert not wrong and len(asked) > 150


@pytest.mark.parametrize("who", ROLES)
def test_the_proxy_opens_no_tunnel_and_hands_out_no_token_to_anyone(who):
    asked = [(method, f"{ROOT}/api/v1/namespaces/{OWN}/{path}") for method, path in product(METHODS, TUNNELS)]
    assert set(statuses(token_of(who), asked)) == {403}


@pytest.mark.parametrize("who", [who for who in ROLES if who != "nobody"])
def test_a_token_that_reads_one_namespace_passes_nothing_else_whatever_its_user_may(who):
    asked = [(method, *path) for method, path in product(METHODS, paths())]
    scope = Scope(verbs=frozenset({"read"}), namespaces=frozenset({OWN}))
    answers = statuses(token_of(who, scope), [(method, path) for method, _, _, path in asked])
    passed = {
        (method, resource, namespace)
        for (method, resource, namespace, _), status in zip(asked, answers, strict=True)
        if status != 403
    }
    own = {("GET", resource, OWN) for resource in {*CORE, "roles", "pytorchjobs"} - HUSHED}
    assert passed <= own | {("GET", resource, "") for resource in SHOWN_TO_ALL}
    assert ("GET", "services", OWN) in passed
