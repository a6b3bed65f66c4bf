"""People of the tests, made by name and role, and the REST clients they use."""

from typing import Any

from django.contrib.auth import get_user_model
from django.utils import timezone
from rest_framework.test import APIClient

from fleet.models import Grant
from fleet.services.authorization import access


def person(name: str, *grants: tuple[str, str], superuser: bool = False) -> Any:
    """A user with roles, each as (role, namespace)."""
    user = get_user_model().objects.create_user(name, password="a long password", is_superuser=superuser)
    for role, namespace in grants:
        Grant.objects.create(user=user, role=role, namespace=namespace)
    return user


def client_of(user: Any) -> APIClient:
    """Signed in by a bearer token, as scripts are."""
    _, text = access.mint(user, "test", life=None, now=timezone.now())
    client = APIClient(enforce_csrf_checks=True)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    return client


def roles_in(own: str) -> dict[str, tuple[str, str] | None]:
    """The grant of each role of the authorisation matrices, in one namespace or in all. A team lead has a quota node too."""
    return {
        "nobody": None,
        "viewer": (Grant.Role.VIEWER, own),
        "lead": (Grant.Role.VIEWER, own),
        "editor": (Grant.Role.EDITOR, own),
        "reader": (Grant.Role.VIEWER, ""),
        "writer": (Grant.Role.EDITOR, ""),
        "quotas": (Grant.Role.QUOTA_ADMIN, ""),
        "admin": (Grant.Role.FLEET_ADMIN, ""),
    }
