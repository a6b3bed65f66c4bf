"""Short-lived credentials for members: the fleet asks each for tokens of the service account it uses (TokenRequest), in time.

What the member was joined with is kept, encrypted, and used for two things: to ask for the first token, and when a token has
ended or is refused, as after an outage that was longer than its life. A member is asked by one process, in a thread of its own.
"""

import base64
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from structlog import get_logger

from fleet.changes import events
from fleet.errors import Conflict, InvalidInput
from fleet.kube.resources import SERVICE_ACCOUNTS
from fleet.member.client import Access, MemberClient
from fleet.member.errors import MemberAway, MemberError, MemberMissing
from fleet.models import Cluster, MemberCredentials
from fleet.services.clusters import clusters
from fleet.services.members import member_clients, member_facts

log = get_logger(__name__)
Reason = MemberCredentials.Reason

LEAST_S = 600
"""No API server issues tokens for less."""
_REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_ACCOUNT = "system:serviceaccount:"
_PAUSE = timedelta(seconds=50)
"""Between two questions to one member: less than a minute, the period of the task."""
_AGAIN = timedelta(minutes=10)
"""After which a member that issued none is asked again."""
_AT_ONCE = 8
_SLOTS = threading.BoundedSemaphore(_AT_ONCE)
_WRITING = threading.Lock()
"""One result is written at a time, so that all threads together need one database connection."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a member answered."""

    reason: MemberCredentials.Reason
    message: str
    token: str = ""
    expires_at: datetime | None = None


def start(now: datetime) -> list[threading.Thread]:
    """Begins to ask the members that are due, as many as there are free threads; does not wait for their answers."""
    if not settings.CONVOY_MEMBERS.token_s:
        for row in MemberCredentials.objects.filter(expires_at__isnull=False):
            _restore(row)
        return []
    unknown = Cluster.objects.filter(credentials=None, short_lived_tokens=True).only("pk")
    MemberCredentials.objects.bulk_create((MemberCredentials(cluster=row) for row in unknown), ignore_conflicts=True)
    threads = []
    for row in _due(now)[:_AT_ONCE]:
        if not _SLOTS.acquire(blocking=False):
            break
        mine = MemberCredentials.objects.filter(pk=row.pk, checked_at=row.checked_at)
        if not mine.update(checked_at=now):
            _SLOTS.release()
            continue
        thread = threading.Thread(target=_tend, args=(row, now), name=f"token {row.cluster.name}", daemon=True)
        thread.start()
        threads.append(thread)
    return threads


def turn_on(cluster: Cluster, *, by: str, now: datetime) -> Cluster:
    """The member is asked for a token within a minute, also where it was on and the member issued none."""
    with transaction.atomic():
        row = clusters.locked(cluster)
        MemberCredentials.objects.filter(cluster_id=row.pk, expires_at=None).update(due_at=None, checked_at=None)
        _switch(row, True, f"{by} turned short-lived tokens on", now)
    return row


def turn_off(cluster: Cluster, *, by: str, now: datetime) -> Cluster:
    """Back to what the member was joined with; refused where that is no longer answered, for nothing else would be left."""
    known = MemberCredentials.objects.select_related("cluster").filter(cluster_id=cluster.pk).first()
    if known is not None and known.expires_at is not None:
        _require_joined(known)
    with transaction.atomic():
        row = clusters.locked(cluster)
        known = MemberCredentials.objects.filter(cluster_id=row.pk).first()
        if known is not None:
            _use_joined(row, known)
        _switch(row, False, f"{by} turned short-lived tokens off", now)
    return row


def _switch(row: Cluster, on: bool, message: str, now: datetime) -> None:
    if row.short_lived_tokens == on:
        return
    row.short_lived_tokens = on
    clusters.announce(row, ["short_lived_tokens"], now)
    events.record(clusters.change(row), "ShortLivedTokensChanged", message, now)


def _require_joined(known: MemberCredentials) -> None:
    name = known.cluster.name
    try:
        member_facts.probe(_joined(known))
    except InvalidInput as e:
        remedy = f"give new credentials first (convoy cluster renew {name})"
        raise Conflict(f"{name} no longer accepts what it was joined with: {remedy}. It says: {e.message}") from e


def _due(now: datetime) -> QuerySet[MemberCredentials]:
    """Also a member that fails although its token has not ended: the token may be refused, as after a restore there."""
    is_due = Q(due_at=None) | Q(due_at__lte=now) | Q(cluster__failing_since__isnull=False, expires_at__isnull=False)
    # One that is farther away is of a clock that was wrong.
    is_free = Q(checked_at=None) | Q(checked_at__lte=now - _PAUSE) | Q(checked_at__gt=now + _PAUSE)
    return (
        MemberCredentials.objects.filter(is_due, is_free, cluster__short_lived_tokens=True)
        .select_related("cluster")
        .order_by(F("checked_at").asc(nulls_first=True), "pk")
    )


def _tend(row: MemberCredentials, now: datetime) -> None:
    try:
        outcome = ask(row, now)
        if outcome is not None:
            with _WRITING:
                try:
                    write(row, outcome, now)
                finally:
                    connection.close()
    finally:
        _SLOTS.release()


def ask(row: MemberCredentials, now: datetime) -> Outcome | None:
    """A token by the credentials in use, or else by those it was joined with; None from a member that does not answer."""
    refusal = None
    for access in _candidates(row, now):
        client = member_clients.connect(access, cluster=row.cluster.name)
        try:
            return _request(client)
        except MemberAway as e:
            log.warning("a member issued no token", cluster=row.cluster.name, error=e.message)
            return None
        except (MemberError, KeyError, TypeError, ValueError) as e:
            refusal = e.message if isinstance(e, MemberError) else "its answer is none of an API server"
        finally:
            client.close()
    return Outcome(Reason.REFUSED, f"the member issues no token: {refusal}"[:300])


def _candidates(row: MemberCredentials, now: datetime) -> Iterator[Access]:
    used, joined = member_clients.access_of(row.cluster), _joined(row)
    if row.expires_at is None or row.expires_at > now:
        yield used
    if joined != used:
        yield joined


def _joined(row: MemberCredentials) -> Access:
    return Access(**(row.joined or row.cluster.access))


def _request(client: MemberClient) -> Outcome:
    username = _named_in(client.access.token) or _username(client)
    if not username.startswith(_ACCOUNT):
        return Outcome(
            Reason.NOT_A_SERVICE_ACCOUNT, f"the fleet is {username[:200]} there: tokens are of service accounts"
        )
    namespace, name = username.removeprefix(_ACCOUNT).split(":")
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": max(LEAST_S, int(settings.CONVOY_MEMBERS.token_s))},
    }
    path = SERVICE_ACCOUNTS.path(namespace, name, subresource="token")
    status = client.create(path, body)["status"]
    expires_at = datetime.fromisoformat(str(status["expirationTimestamp"]).replace("Z", "+00:00"))
    return Outcome(Reason.ISSUED, f"tokens of {namespace}/{name}", str(status["token"]), expires_at)


def _named_in(token: str) -> str:
    """The service account that the token of an API server names; empty for every other token."""
    try:
        payload = token.split(".")[1]
        subject = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["sub"]
    except (IndexError, ValueError, KeyError, TypeError):
        return ""
    return subject if isinstance(subject, str) and subject.startswith(_ACCOUNT) else ""


def _username(client: MemberClient) -> str:
    """As the member has it; API servers before 1.28 cannot be asked."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        return str(client.create(_REVIEW, review)["status"]["userInfo"]["username"])
    except MemberMissing:
        return "a user that it does not name"


def write(row: MemberCredentials, outcome: Outcome, now: datetime) -> None:
    """Puts the answer on the rows; not when credentials were renewed, or tokens turned off, while the member was asked."""
    with transaction.atomic():
        cluster = Cluster.objects.select_for_update(no_key=True).filter(pk=row.cluster_id).first()
        if cluster is None or not cluster.short_lived_tokens or cluster.access != row.cluster.access:
            return
        joined, has_ended = _joined(row), row.expires_at is None or row.expires_at <= now
        if outcome.expires_at is not None:
            access, expires_at = replace(joined, token=outcome.token), outcome.expires_at
            due_at = now + (expires_at - now) / 2
        elif has_ended or cluster.failing_since is not None:
            access, expires_at, due_at = joined, None, now + _AGAIN
        else:
            # It works until it ends; what was joined with may have ended long ago.
            access, expires_at, due_at = member_clients.access_of(cluster), row.expires_at, now + _AGAIN
        cluster.access = member_clients.stored(access)
        cluster.save(update_fields=["access"])
        _note(row, cluster, outcome, now)
        is_bounded = expires_at is not None
        known = {
            "joined": member_clients.stored(joined) if is_bounded else {},
            "expires_at": expires_at,
            "due_at": due_at,
        }
        MemberCredentials.objects.filter(pk=row.pk).update(**known)


def _note(row: MemberCredentials, cluster: Cluster, outcome: Outcome, now: datetime) -> None:
    """In the cluster's timeline when it is another reason than before."""
    about = {"reason": outcome.reason, "message": outcome.message}
    if row.reason == outcome.reason:
        MemberCredentials.objects.filter(pk=row.pk).update(**about)
        return
    MemberCredentials.objects.filter(pk=row.pk).update(**about, since=now)
    clusters.announce(cluster, [], now)
    is_fault = outcome.reason is Reason.REFUSED
    events.record(clusters.change(cluster), outcome.reason.value, outcome.message, now, warning=is_fault)


def _restore(row: MemberCredentials) -> None:
    """The setting was turned off: back to what the member was joined with."""
    with transaction.atomic():
        cluster = Cluster.objects.select_for_update(no_key=True).filter(pk=row.cluster_id).first()
        if cluster is not None:
            _use_joined(cluster, row)


def _use_joined(cluster: Cluster, known: MemberCredentials) -> None:
    """Forgets the token, inside a transaction that has locked the cluster."""
    if known.expires_at is not None:
        cluster.access = known.joined
        cluster.save(update_fields=["access"])
    known.delete()
