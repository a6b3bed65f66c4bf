"""What the workloads of each namespace may ask for: an admin's word, or the default, which is Pod Security's baseline.

Every door that takes workloads asks here, and so does the dispatcher, since policies change a job after it was taken in.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.forms.models import model_to_dict

from fleet.changes.audit_context import current
from fleet.core.members import marks
from fleet.core.security.pod_security import Level, Profile
from fleet.db import prepared
from fleet.db.prepared import TEXT
from fleet.errors import FieldFault, InvalidInput, NotFound
from fleet.kube import names
from fleet.models import NamespacePolicy
from fleet.services.auditing import audit
from fleet.services.authorization import access

KIND = "NamespacePolicy"
DEFAULT = Profile()
TOKEN_SECRET = "kubernetes.io/service-account-token"  # noqa: S105 - a type of Secrets, not one of them
TOKEN_SECRET_REFUSED = "must not be of this type: a cluster fills it with credentials, which are not handed out"  # noqa: S105
_LABEL = "pod-security.kubernetes.io/"
_LISTS = ("service_accounts", "capabilities", "host_paths")
_MOST = 100


def profiles(namespaces: Iterable[str]) -> Mapping[str, Profile]:
    """By namespace; in one query."""
    asked = set(namespaces)
    rows = {row.name: _profile(row) for row in _NAMED.objects(names=list(asked))}
    return {name: rows.get(name, DEFAULT) for name in asked}


_NAMED = prepared.Rows(lambda param: NamespacePolicy.objects.filter(name__in=param("names", TEXT)))


def profile(namespace: str) -> Profile:
    return profiles([namespace])[namespace]


def labels(allowed: Profile) -> dict[str, str]:
    """On a namespace that Convoy makes in a member, so that the member enforces the same."""
    return {
        marks.MANAGED_BY: marks.MANAGER,
        f"{_LABEL}enforce": allowed.enforced.value,
        f"{_LABEL}warn": allowed.level.value,
        f"{_LABEL}audit": allowed.level.value,
    }


def find(name: str) -> NamespacePolicy:
    row = NamespacePolicy.objects.filter(name=name).first()
    if row is None:
        raise NotFound(f"namespace {name[:63]} has no policy of its own: the default is level {DEFAULT.level}")
    return row


def save(name: str, values: Mapping[str, Any], *, now: datetime) -> NamespacePolicy:
    """Replaces the policy of the namespace; what ``values`` leaves out is as in the default."""
    wanted = _checked(name, values)
    with transaction.atomic():
        before = NamespacePolicy.objects.select_for_update(no_key=True).filter(name=name).first()
        row, _ = NamespacePolicy.objects.update_or_create(name=name, defaults={**wanted, "updated_at": now})
        _note("apply", name, before, row, now)
    return row


def remove(name: str, *, now: datetime) -> None:
    """Back to the default."""
    with transaction.atomic():
        row = find(name)
        NamespacePolicy.objects.filter(pk=row.pk).delete()
        _note("delete", name, row, None, now)


def _profile(row: NamespacePolicy) -> Profile:
    return Profile(
        level=Level(row.pod_security),
        service_accounts=frozenset(row.service_accounts),
        capabilities=frozenset(row.capabilities),
        host_paths=tuple(row.host_paths),
        host_network=row.host_network,
        node_name=row.node_name,
    )


def _checked(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    faults = [FieldFault("name", detail)] if (detail := names.label_fault(name)) else []
    if not detail and access.is_closed(name):
        faults.append(FieldFault("name", "is a namespace of the cluster's own, in which the fleet runs nothing"))
    level = values.get("pod_security", DEFAULT.level.value)
    if level not in {known.value for known in Level}:
        faults.append(FieldFault("pod_security", f"must be one of {', '.join(Level)}"))
    lists = {field: sorted(set(values.get(field) or ())) for field in _LISTS}
    faults += [FieldFault(field, f"must have at most {_MOST}") for field, some in lists.items() if len(some) > _MOST]
    for account in lists["service_accounts"]:
        if detail := names.subdomain_fault(account):
            faults.append(FieldFault("service_accounts", detail))
    for capability in lists["capabilities"]:
        if not capability.isupper() or capability.startswith("CAP_"):
            faults.append(FieldFault("capabilities", f"must be like IPC_LOCK, not {capability!r}"))
    for path in lists["host_paths"]:
        if not path.startswith("/") or ".." in path.split("/"):
            faults.append(FieldFault("host_paths", f"must be an absolute path without '..', not {path!r}"))
    if faults:
        raise InvalidInput("; ".join(f"{fault.field} {fault.detail}" for fault in faults), tuple(faults))
    flags = {field: bool(values.get(field)) for field in ("host_network", "node_name")}
    return {"pod_security": level, **lists, **flags}


def _note(verb: str, name: str, before: NamespacePolicy | None, after: NamespacePolicy | None, now: datetime) -> None:
    if (asking := current.get()) is not None:
        audit.done_changing(asking, _shown(before), _shown(after), now, verb=verb, kind=KIND, name=name)


def _shown(row: NamespacePolicy | None) -> dict[str, Any] | None:
    return None if row is None else model_to_dict(row, exclude=["id", "updated_at"])
