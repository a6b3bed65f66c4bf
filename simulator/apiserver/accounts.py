"""ServiceAccounts of a simulated member: their tokens and permissions.

A simulated member has no RBAC objects. Every ServiceAccount has in its own namespace the permissions that the operators' charts
grant (DLRover's ``default-role``), and no others: no Secrets, no other namespaces, no cluster-wide objects. The supervisor's
has those of its manifests (``deploy/supervisor-manifests``).
"""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fleet.kube.resources import CONFIG_MAPS, ELASTIC_JOBS, LEASES, PODS, SERVICES

READ, WRITE = ("get", "list", "watch"), ("create", "update", "patch", "delete", "deletecollection")
RIGHTS: Mapping[tuple[str, str], tuple[str, ...]] = {
    (PODS.group, PODS.plural): (*READ, *WRITE),
    (SERVICES.group, SERVICES.plural): (*READ, *WRITE),
    (CONFIG_MAPS.group, CONFIG_MAPS.plural): (*READ, *WRITE),
    (ELASTIC_JOBS.group, ELASTIC_JOBS.plural): (*READ, *WRITE),
}
"""API group and plural -> verbs. ``pods/log`` is read with pods."""
SUPERVISOR = "system:serviceaccount:arena-system:elastic-job-supervisor"
SHORTEST_S, LONGEST_S, _USUAL_S = 600, 2**32, 3600


@dataclass(frozen=True, slots=True)
class Account:
    namespace: str
    name: str

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    @property
    def is_fleet(self) -> bool:
        """The account that a fleet may be given there, which is bound to cluster-admin."""
        return (self.namespace, self.name) == ("convoy-system", "convoy")

    def may(self, verb: str, group: str, plural: str, namespace: str) -> bool:
        if self.is_fleet or self.user == SUPERVISOR and verb in _supervisor_verbs(group, plural, namespace):
            return True
        return namespace == self.namespace and verb in RIGHTS.get((group, plural), ())


def _supervisor_verbs(group: str, plural: str, namespace: str) -> tuple[str, ...]:
    """Of pods, nodes, and the kinds of jobs, which it finds suspended or with their notices."""
    if (group, plural) == (LEASES.group, LEASES.plural):
        return ("get", "create", "update") if namespace == "arena-system" else ()
    if group == "":
        return {"pods": (*READ, "patch", "delete"), "nodes": READ}.get(plural, ())
    return ("get", "list", "patch") if plural.endswith(("jobs", "jobsets", "sparkapplications")) else ()


def rules(account: Account) -> dict[str, Any]:
    """The rules of the account in its own namespace, as in a SelfSubjectRulesReview."""
    rules = [
        {"verbs": [*verbs], "apiGroups": [group], "resources": [plural]} for (group, plural), verbs in RIGHTS.items()
    ]
    return {"resourceRules": rules, "nonResourceRules": []}


def from_user(user: str) -> Account | None:
    """The ServiceAccount that a user name stands for; None for any other user."""
    parts = user.split(":")
    return Account(*parts[2:]) if parts[:2] == ["system", "serviceaccount"] and len(parts) == 4 else None


class Tokens:
    """Issues and checks tokens. The signing key lasts as long as the server runs, like its pods."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def issue(self, account: Account, seconds: Any, now: float) -> tuple[str, float]:
        """A token and when it expires. ``seconds`` is what a TokenRequest asks for."""
        valid_s = int(seconds) if isinstance(seconds, int) else _USUAL_S
        claims = json.dumps([account.namespace, account.name, now + valid_s]).encode()
        return f"{_encoded(claims)}.{_encoded(self._signature(claims))}", now + valid_s

    def account(self, token: bytes, now: float) -> Account | None:
        """The ServiceAccount of a token; None when we did not issue it, or it has expired."""
        claims, _, signature = token.decode("latin-1").partition(".")
        try:
            body, signed = _decoded(claims), _decoded(signature)
        except ValueError:
            return None
        if not hmac.compare_digest(signed, self._signature(body)):
            return None
        namespace, name, expires = json.loads(body)
        return Account(namespace, name) if now < expires else None

    def _signature(self, claims: bytes) -> bytes:
        return hmac.digest(self._key, claims, hashlib.sha256)


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
