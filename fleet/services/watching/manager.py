"""The main loop of a watcher process: keeps one `MemberWatch` for each member that this process owns by lease.

The journal shows which clusters have joined, changed their credentials or left. Every two seconds the loop writes the
heartbeat of the process, balances the members with the other watchers (`leases`), and confirms the members whose rows are
current.
"""

import logging
import random
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from django.db import connection, transaction

from fleet import heartbeat
from fleet.changes import journal
from fleet.db import clock, connections
from fleet.kube.resources import CRDS, EVENTS, NODES, PODS, Resource
from fleet.models import Cluster
from fleet.services.clusters import freshness, process_pods
from fleet.services.members import event_handlers, member_clients, member_facts
from fleet.services.operations import processes
from fleet.services.watching import leases
from fleet.services.watching.member_watch import DATABASE_AWAY, DEVICES, MemberWatch

log = logging.getLogger(__name__)


class WatchManager:
    tick_s = 0.3
    heartbeat_every = timedelta(seconds=2)
    resync_every = timedelta(seconds=20)
    """How often the watches are compared with the clusters when the journal reports no change."""
    restart_s = 5.0
    """How long after a crash a watch is started again."""
    start_watch = MemberWatch

    def __init__(self, stop: threading.Event, rng: random.Random) -> None:
        self.instance = leases.new_instance()
        self._stopping, self._rng = stop, rng
        self._watches: dict[int, MemberWatch] = {}
        self._owned: leases.Epochs = {}
        self._not_before: dict[int, float] = {}
        self._version = -1
        self._has_changed = False
        """Whether clusters or leases may have changed since the watches were last compared with them."""
        self._beat_at = self._resynced_at = datetime.min.replace(tzinfo=UTC)

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    self.tick(clock.now())
                    connections.give_back()
                except DATABASE_AWAY as e:
                    log.warning("the database does not answer; the watcher tries again: %s", e)
                    connection.close()
                self._stopping.wait(self.tick_s)
        finally:
            self.stop()

    def tick(self, now: datetime) -> None:
        """Reads the journal; balances the leases and compares the watches when it has changes or their interval is over."""
        heartbeat.beat()
        beats = abs(now - self._beat_at) >= self.heartbeat_every
        if beats:
            # Before the leases are balanced: only a watcher with a recent heartbeat counts as live and gets a share.
            processes.beat(leases.ROLE, now, self.instance)
            self._beat_at = now
        crashed = self._crashed()
        # Kept until it was followed: the database may go away before that.
        self._has_changed |= self._clusters_changed()
        if beats or self._has_changed or crashed:
            self._has_changed |= self._rebalance(now)
        if self._has_changed or crashed or abs(now - self._resynced_at) >= self.resync_every:
            self._resync()
            self._has_changed, self._resynced_at = False, now
        if beats:
            self._confirm(now)

    def stop(self) -> None:
        """Stops all watches and lets the other watchers take their members at once."""
        self._stop_watches(list(self._watches))
        try:
            leases.leave(self.instance)
            connections.give_back()
        except DATABASE_AWAY as e:
            log.warning("failed to release the leases of this watcher; they expire by themselves: %s", e)

    def _stop_watches(self, cluster_ids: Sequence[int]) -> None:
        watches = [self._watches.pop(pk) for pk in cluster_ids if pk in self._watches]
        for watch in watches:
            watch.stop()
        deadline = time.monotonic() + 1.0
        for watch in watches:
            watch.join(max(0.0, deadline - time.monotonic()))

    def _rebalance(self, now: datetime) -> bool:
        """Balances the leases. Returns whether this process now owns other members than before."""
        assignment = leases.rebalance(self.instance, now)
        if assignment.surplus:
            # The watches stop before their leases are released: the next owner starts with a full list, and no row written
            # here may follow it.
            self._stop_watches(list(assignment.surplus))
            leases.give_back(self.instance, assignment.surplus)
        before, self._owned = self._owned, assignment.owned
        return before != self._owned

    def _confirm(self, now: datetime) -> None:
        """Confirms the members whose rows are current.

        The leases are locked until this is written: a member that another watcher has taken over is confirmed by that one.
        """
        current = {pk: watch.epoch for pk, watch in self._watches.items() if watch.is_current}
        with transaction.atomic():
            freshness.confirm(leases.still_owned(current), now)

    def _clusters_changed(self) -> bool:
        """Whether any cluster changed since the last tick. True as well when the journal no longer reaches back that far."""
        if self._version == journal.tip():
            return False
        try:
            newest, changes = journal.changes_of("Cluster", self._version)
        except journal.Compacted:
            self._version = journal.head()
            return True
        self._version = max(self._version, newest)
        return changes > 0

    def _crashed(self) -> bool:
        return any(not w.alive and self._not_before.get(pk, 0) < time.monotonic() for pk, w in self._watches.items())

    def _resync(self) -> None:
        process_pods.publish(Cluster.objects.only("name", "server"))
        rows = {row.pk: row for row in Cluster.objects.filter(pk__in=self._owned)}
        for pk in self._watches.keys() - rows.keys():
            self._watches.pop(pk).stop()
        for pk, row in rows.items():
            epoch, watch = self._owned[pk], self._watches.get(pk)
            if watch and watch.alive and (watch.epoch, watch.digest) == (epoch, _digest(row)):
                watch.follow(watched_kinds(row))
            elif self._not_before.get(pk, 0) < time.monotonic():
                self._restart(row, epoch, watch)

    def _restart(self, row: Cluster, epoch: int, old: MemberWatch | None) -> None:
        if old:
            old.stop()
            old.join(1.0)
        self._not_before[row.pk] = time.monotonic() + (self.restart_s if old and not old.alive else 0)
        watch = self._watches[row.pk] = self.start_watch(row, epoch, self._rng)
        watch.start(watched_kinds(row))


def watched_kinds(cluster: Cluster) -> Sequence[Resource]:
    """The kinds to watch in this member: nodes, pods, and the kinds of the handlers that the member serves.

    Definitions, events and devices for claims are optional: they are watched only where the member is not known to refuse them.
    """
    kinds = [kind for kind in event_handlers.resources() if member_facts.serves(cluster.apis, kind)]
    crds = [CRDS] if member_facts.serves(cluster.apis, CRDS) and _may_see(cluster, CRDS) else []
    claimed = all(member_facts.serves(cluster.apis, kind) and _may_see(cluster, kind) for kind in DEVICES)
    devices = DEVICES if claimed else ()
    return [NODES, PODS, *kinds, *devices, *crds, *([EVENTS] if _may_see(cluster, EVENTS) else [])]


def _may_see(cluster: Cluster, resource: Resource) -> bool:
    """False when the permission check of the cluster has shown that it refuses to list or watch the resource."""
    return all(row["allowed"] for row in cluster.permissions if row["resource"] == resource.qualified)


def _digest(cluster: Cluster) -> str:
    return member_clients.digest(member_clients.access_of(cluster))
