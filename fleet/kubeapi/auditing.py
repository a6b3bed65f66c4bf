"""Sets the audit context of requests at the Kubernetes-style door, with the object as it was before a write."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from fleet.changes.audit_context import Asking
from fleet.errors import Forbidden
from fleet.kube.server.request import Request
from fleet.kube.server.verbs import is_dry
from fleet.kubeapi.objects.kinds import Target
from fleet.models import AuditEntry
from fleet.services.auditing import audit
from fleet.services.members.proxying import TUNNELED, Call

SECRET, READ = "Secret", "read"
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@contextmanager
def asking(asked: Request, target: Target, user: Any) -> Iterator[None]:
    """Nothing for what only reads, or only tries what is allowed; but whatever is answered with a Secret."""
    is_try = asked.method in VERBS and is_dry(asked)
    is_shown = target.kind.name == SECRET and asked.method != "POST"
    if not is_shown and is_try:
        with _trying(asked, target, user):
            yield
        return
    if not is_shown and asked.method not in VERBS:
        yield
        return
    with audit.asking(user.get_username, door="kubectl", address=asked.address, request=_line(asked)) as this:
        _describe(this, asked, target)
        if is_shown and (is_try or asked.method == "GET"):
            this.verb = this.about["verb"] = READ
            yield
            return audit.done(this)
        if target.name:
            audit.seen_named(target.kind.name, target.namespace, target.name)
        yield
        if is_shown and not this.lines:
            # It changed nothing, and was answered with the object as it is.
            audit.done(this, verb=READ)


@contextmanager
def _trying(asked: Request, target: Target, user: Any) -> Iterator[None]:
    """A dry run of what the caller may not do is a probe, and leaves a line as the write itself would."""
    try:
        yield
    except Forbidden as e:
        this = Asking(audit.snapshot_row, user.get_username, "kubectl", asked.address, _line(asked))
        _describe(this, asked, target)
        audit.refused(this, e.status, f"dry run: {e.message}")
        raise


def _describe(this: Asking, asked: Request, target: Target) -> None:
    verb = VERBS.get(asked.method, READ)
    this.about = {"verb": verb, "kind": target.kind.name, "namespace": target.namespace, "name": target.name}
    this.verb = verb if verb == "delete" else ""


def is_for_audit(call: Call) -> bool:
    """Of calls to a member: what writes, what reads Secrets and logs, and what runs in pods."""
    return call.writes or call.kind == SECRET or call.subresource == "log" or call.subresource in TUNNELED


def begun(asked: Request, cluster: str, call: Call, user: Any) -> AuditEntry | None:
    """A line before the member is asked: what cannot be written down is not done."""
    return audit.begun(_asking(asked, cluster, call, user)) if is_for_audit(call) else None


def ended(line: AuditEntry | None, status: int, message: str = "") -> None:
    """As the member answered."""
    if line is None:
        return None
    if status < 400:
        return audit.ended(line, audit.Outcome.DONE)
    outcome = audit.Outcome.FAILED if status >= 500 else audit.Outcome.REFUSED
    return audit.ended(line, outcome, message or f"the cluster answered {status}")


def refused(asked: Request, cluster: str, call: Call, user: Any, status: int, message: str) -> None:
    """A call that the member is not asked."""
    if is_for_audit(call):
        audit.refused(_asking(asked, cluster, call, user), status, message)


@dataclass(frozen=True, slots=True)
class Session:
    """A stream to a pod, for its two lines: one before it opens, and one when it is over."""

    asking: Asking
    command: dict[str, Any]
    """What is run, and how."""


def session_of(asked: Request, cluster: str, call: Call, user: Any, command: dict[str, Any]) -> Session:
    return Session(_asking(asked, cluster, call, user), command)


def session_begun(session: Session) -> AuditEntry:
    return audit.begun(session.asking, after=session.command)


def session_over(session: Session, message: str) -> None:
    this = session.asking
    audit.done(replace(this, verb="end"), message=message)


def _asking(asked: Request, cluster: str, call: Call, user: Any) -> Asking:
    verb = VERBS["POST"] if call.subresource in TUNNELED else VERBS.get(asked.method, READ)
    this = Asking(audit.snapshot_row, user.get_username, "proxy", asked.address, _line(asked), verb)
    names = {"namespace": call.namespace, "name": call.name}
    this.about = {"cluster": cluster, "kind": "/".join(filter(None, (call.kind, call.subresource))), **names}
    return this


def _line(asked: Request) -> str:
    return f"{asked.method} {asked.path}"
