"""Tells the audit who asks at the Kubernetes-style door, and what the object looked like before."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fleet.audit_context import Asking
from fleet.kubeapi.catalog import Target
from fleet.kubeapi.request import Request
from fleet.services import audit
from fleet.services.proxying import Call

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@contextmanager
def asking(asked: Request, target: Target, user: Any) -> Iterator[None]:
    """Nothing for what only reads, or only tries."""
    if asked.method not in VERBS or asked.dry_run:
        yield
        return
    line, verb = f"{asked.method} {asked.path}", VERBS[asked.method]
    with audit.asking(user.get_username, door="kubectl", address=asked.address, request=line) as this:
        kind = target.kind.name
        this.about = {"verb": verb, "kind": kind, "namespace": target.namespace, "name": target.name}
        this.verb = verb if verb == "delete" else ""
        if target.name:
            audit.seen_named(kind, target.namespace, target.name)
        yield


def proxied(asked: Request, cluster: str, call: Call, user: Any, status: int, message: str = "") -> None:
    """A write to a member's own object, as it was answered."""
    this = Asking(
        audit.snapshot_row,
        user.get_username,
        "proxy",
        asked.address,
        f"{asked.method} {asked.path}",
        VERBS[asked.method],
    )
    names = {"namespace": call.namespace, "name": call.name}
    this.about = {"cluster": cluster, "kind": "/".join(filter(None, (call.kind, call.subresource))), **names}
    if status < 400:
        audit.done(this)
    else:
        audit.refused(this, status, message or f"the cluster answered {status}")
