"""Which watcher process watches which member: one lease for each member.

A lease is held by the watcher it names for as long as that watcher's heartbeat is younger than the term
(`CONVOY_WATCH_LEASE_S`). All watchers read the same rows and compute the same quotas (`fleet.core.members.sharding`): each
releases the leases above its quota, and takes free leases up to it. Taking a lease raises its epoch. Every transaction of a
watch checks the epoch under which the watch was started (`fence`), so that a watcher that was paused for longer than the term
writes nothing once another one has its members.
"""

import os
import platform
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from structlog import get_logger

from fleet.core.members import sharding
from fleet.db import isolation, prepared
from fleet.db.prepared import TIME
from fleet.models import Cluster, Heartbeat, Lease

log = get_logger(__name__)

ROLE = "watcher"
_PREFIX = "watch/"

_MEMBERS = prepared.Rows(lambda _: Cluster.objects.order_by().values_list("pk", "uid"))
_WATCHES = prepared.Rows(lambda _: Lease.objects.filter(name__startswith=_PREFIX))
_LIVE = prepared.Rows(
    lambda param: Heartbeat.objects.filter(
        role=ROLE, at__gte=param("since", TIME), at__lte=param("until", TIME)
    ).values_list("instance")
)

Epochs = dict[int, int]
"""The epoch of the lease by the primary key of its cluster."""


class LeaseLost(isolation.Ends):
    """Another watcher has taken the member over. The watch must stop and write nothing."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The members of one watcher."""

    owned: Epochs
    surplus: Epochs
    """Members above its quota: it stops their watches and then releases their leases."""


def new_instance() -> str:
    """The name of this watcher. It is never used again: another process may get the same pid on the same host."""
    return f"{platform.node()[:100]}:{os.getpid()}:{secrets.token_hex(3)}"


def rebalance(watcher: str, now: datetime) -> Assignment:
    """Takes free leases up to the watcher's quota, and returns what it owns and which of that is above the quota."""
    members = {_name(uid): pk for pk, uid in _MEMBERS.values()}
    leases = _leases(members)
    live = _live_watchers(now) | {watcher}
    holders = {name: lease.holder if lease.holder in live else "" for name, lease in leases.items()}
    owned = dict.fromkeys(live, 0) | Counter(holder for holder in holders.values() if holder)
    quota = sharding.quotas(owned, len(members))[watcher]
    own = sorted(name for name, holder in holders.items() if holder == watcher)
    free = sorted(name for name, holder in holders.items() if not holder)
    wanted = [leases[name] for name in free[: max(0, quota - len(own))]]
    taken = _claim_leases(watcher, wanted) if wanted else {}
    epochs = {name: lease.epoch for name, lease in leases.items()} | taken
    return Assignment(
        owned={members[name]: epochs[name] for name in (*own[:quota], *taken)},
        surplus={members[name]: epochs[name] for name in own[quota:]},
    )


def give_back(watcher: str, cluster_ids: Collection[int]) -> None:
    """Frees these leases of the watcher. Call it when their watches have stopped."""
    uids = Cluster.objects.filter(pk__in=cluster_ids).values_list("uid", flat=True)
    Lease.objects.filter(holder=watcher, name__in=[_name(uid) for uid in uids]).update(holder="")


def leave(watcher: str) -> None:
    """Releases everything of a watcher that ends, so that the others can take its members at once."""
    Lease.objects.filter(holder=watcher, name__startswith=_PREFIX).update(holder="")
    Heartbeat.objects.filter(role=ROLE, instance=watcher).delete()


def still_owned(epochs: Mapping[int, int]) -> set[int]:
    """The clusters whose lease still has the given epoch. Their leases stay locked until the current transaction ends."""
    uids = dict(Cluster.objects.filter(pk__in=epochs).values_list("uid", "pk"))
    clusters = {_name(uid): pk for uid, pk in uids.items()}
    rows = Lease.objects.filter(name__in=clusters).order_by("name").select_for_update(no_key=True, skip_locked=True)
    return {clusters[name] for name, epoch in rows.values_list("name", "epoch") if epochs[clusters[name]] == epoch}


def fence(cluster_uid: UUID, epoch: int) -> Callable[[], None]:
    """A check for `fleet.db.fencing`: raises `LeaseLost` once the lease of the member has another epoch.

    On PostgreSQL it locks the lease until the transaction ends. The lock is shared with other writers of this watcher. It
    blocks a takeover: `rebalance` skips locked leases and tries again later.
    """
    statement = "SELECT 1 FROM fleet_lease WHERE name = %s AND epoch = %s"
    if connection.vendor == "postgresql":
        statement += " FOR KEY SHARE"

    def check() -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement, [_name(cluster_uid), epoch])
            if cursor.fetchone() is None:
                raise LeaseLost

    return check


def owners(now: datetime) -> dict[str, list[str]]:
    """The names of the members of each live watcher. Members that no live watcher owns are under the empty name."""
    live = _live_watchers(now)
    holders = dict(Lease.objects.filter(name__startswith=_PREFIX).values_list("name", "holder"))
    members: dict[str, list[str]] = {watcher: [] for watcher in sorted(live)}
    for name, uid in Cluster.objects.order_by("name").values_list("name", "uid"):
        holder = holders.get(_name(uid), "")
        members.setdefault(holder if holder in live else "", []).append(name)
    return members


def _name(cluster_uid: UUID) -> str:
    return f"{_PREFIX}{cluster_uid}"


def _live_watchers(now: datetime) -> set[str]:
    term = timedelta(seconds=settings.CONVOY_MEMBERS.watch_lease_s)
    # A heartbeat of later than now is of a clock that was set back since, and its watcher may have died before that.
    return {instance for (instance,) in _LIVE.values(since=now - term, until=now + term)}


def _leases(names: Collection[str]) -> dict[str, Lease]:
    """The lease of each member. Creates the missing ones, and deletes those of members that have left the fleet."""
    leases = {lease.name: lease for lease in _WATCHES.objects()}
    if obsolete := leases.keys() - names:
        Lease.objects.filter(name__in=obsolete).delete()
    if new := [Lease(name=name) for name in names if name not in leases]:
        Lease.objects.bulk_create(new, ignore_conflicts=True)
        leases |= {lease.name: lease for lease in Lease.objects.filter(name__in=[lease.name for lease in new])}
    return {name: leases[name] for name in names if name in leases}


@transaction.atomic
def _claim_leases(watcher: str, leases: Iterable[Lease]) -> dict[str, int]:
    """Takes the leases that have not changed since they were read, and returns their new epochs.

    A lease that a writer has locked (`fence`) is skipped until the next call, so that one stopped process cannot delay the
    takeover of other members.
    """
    read = {lease.name: lease for lease in leases}
    rows = Lease.objects.filter(name__in=read).order_by("name").select_for_update(skip_locked=True)
    taken = {}
    for row in rows:
        before = read[row.name]
        if (row.holder, row.epoch) != (before.holder, before.epoch):
            continue
        if row.holder:
            log.warning("member taken over", lease=row.name, watcher=watcher, from_holder=row.holder)
        Lease.objects.filter(pk=row.pk).update(holder=watcher, epoch=row.epoch + 1)
        taken[row.name] = row.epoch + 1
    return taken
