"""People of the tests, made by name and role, what they prove themselves with, and the REST clients they use."""

import base64
from datetime import datetime
from typing import Any

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.contrib.auth import get_user_model
from django.utils import timezone
from rest_framework.test import APIClient

from fleet.models import Grant
from fleet.services.authorization import access

PASSWORD = "a long password"


def person(name: str, *grants: tuple[str, str], superuser: bool = False) -> Any:
    """A user with roles, each as (role, namespace)."""
    user = get_user_model().objects.create_user(name, password=PASSWORD, is_superuser=superuser)
    for role, namespace in grants:
        Grant.objects.create(user=user, role=role, namespace=namespace)
    return user


def code_at(secret: str, when: datetime) -> str:
    """What an authenticator app shows for a second factor's secret at a moment (RFC 6238)."""
    return TOTP(base64.b32decode(secret), 6, SHA1(), 30).generate(int(when.timestamp())).decode()


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
