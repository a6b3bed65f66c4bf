"""The scheduler one process keeps between cycles, brought up to date from the journal by loading only what changed.

Whoever holds the lease looks here. What the journal does not tell in rows (policies, queues, the tree), and whatever is odd
(the journal compacted, the tree another one), loads everything anew. A picture that is old costs nothing but a lost claim:
what a plan made from it may do is decided by the conditional updates that write it down.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from django.db.models import QuerySet

from fleet import journal
from fleet.db.repeatable_read import one_moment
from fleet.models import Cluster, Hold, Node
from jobs import snapshot, snapshot_topology
from jobs.core.admission.placement_cache import Places
from jobs.core.admission.plans import Placed
from jobs.core.gang.types import Promise, Runner
from jobs.core.policies.propagation import PolicySpec
from jobs.core.preemption.cost import Loss
from jobs.core.reasons import Code
from jobs.core.scheduling.backfill_reservation import Runs
from jobs.core.scheduling.scheduler import Scheduler
from jobs.events import CLAIM_LOCATION, WORK
from jobs.kinds import registry
from jobs.models import Job
from jobs.services.scheduling import rejections, runtimes
from jobs.services.scheduling.preemption_candidates import Runners
from quotas.core.ledger import Charge

_MANY = 20_000
"""Journal lines beyond which everything is loaded anew."""
_FRESH = timedelta(minutes=5)
"""How long a picture is kept at most: what nobody journalled is found after this."""
_WRITERS_S = 1.0
"""How long a refresh waits for journal entries that are being written; what asked for the cycle may come behind them."""
_CHUNK = 500
_FAILURES_EVERY = timedelta(seconds=30)
"""How often failures are counted anew: they only rank clusters."""
_COLUMNS = (*snapshot.WAITING, "reason_code", "tree_version", "reclaim", "suspended", "deleting_at")
T = TypeVar("T")


class Picture:
    """Not shared between threads: each worker process has one."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self._last: journal.Entry | None = None
        """The newest journal line it was told of."""
        self._tree = 0
        self._loaded_at: datetime | None = None
        self._failures_at = datetime.min.replace(tzinfo=UTC)
        self._clusters: dict[str, str] = {}
        """Uid → name."""
        self._pks: dict[str, int] = {}
        self._policies: dict[int, PolicySpec] = {}
        self._where = snapshot_topology.Whereabouts()
        self._runs: Runs | None = None
        """Kept up to date once somebody has asked."""
        self._runners = Runners()
        self.stops_somebody = False
        """Whether some queue is stopped, so that whoever runs there has to leave."""
        self.meets_others = False
        """Whether somebody may have been read under another tree than the one in force."""
        self._set_aside: dict[int, datetime] = {}
        """Jobs whose placement was rejected -> until when they are left out."""
        self._now = datetime.min.replace(tzinfo=UTC)
        self._known: set[int] = set()
        """Lines of the journal that are no news here."""

    def refresh(self, now: datetime) -> Scheduler:
        """The scheduler, told of everything that was committed until now."""
        self._now = now
        due = [pk for pk, until in self._set_aside.items() if until <= now]
        with one_moment(_WRITERS_S):
            if self._last is None or self._is_stale(now) or not self._follow(self._last):
                self._load(now)
            if due:
                self._try_again(due)
            if not timedelta() <= now - self._failures_at < _FAILURES_EVERY:
                self.scheduler.places.engine.set_failures(snapshot.failures(now))
                self._failures_at = now
        return self.scheduler

    def doubt(self, lost: Iterable[Placed]) -> None:
        """These could not be placed as planned: they are read again."""
        pks = []
        for each in lost:
            pks.append(each.gang.job_id)
            for promise in each.spot.promises(each.gang):
                self.scheduler.places.release(promise.key)
            self.scheduler.release(each.gang.job_id)
        if pks:
            self._tell_jobs(Job.objects.filter(pk__in=pks))

    def wrote(self, placed: Collection[int], versions: Iterable[int]) -> None:
        """Jobs of its scheduler's plan have their places; these lines of the journal tell of nothing else it has to read."""
        self._known.update(versions)
        self._runners.changed(placed)
        if self._runs is not None:
            runtimes.read_again(self._runs, placed)

    def runs(self) -> Runs:
        """Who runs; as of the last refresh."""
        if self._runs is None:
            self._runs = runtimes.load()
        return self._runs

    def runners(self) -> Sequence[Runner]:
        """Who might be asked to make room; none without a quota tree."""
        quota, held = self.scheduler.quota, self.scheduler.places.promises
        return list(self._runners.read(quota, held.keys()).values()) if quota else []

    def losses(self) -> Mapping[int, Loss]:
        """What stopping each of the runners would cost, as of when they were asked for."""
        return self._runners.losses

    def forget(self) -> None:
        self._last = None

    def _is_stale(self, now: datetime) -> bool:
        if self._loaded_at is None or not timedelta() <= now - self._loaded_at < _FRESH:
            return True
        return snapshot.tree_version() != self._tree

    def _load(self, now: datetime) -> None:
        last = journal.newest(but=_NO_NEWS)
        charged = list(snapshot.charged_jobs().values_list("pk", "uid", "leaf", "charge", "preemptible"))
        charges = {pk: Charge(*charge) for pk, _, *charge in charged}
        found = snapshot.load_quota(charges.values())
        self._where, sites = snapshot_topology.whereabouts(), snapshot.load_sites()
        scheduler = Scheduler(found, Places(sites))
        scheduler.places.engine.expect(snapshot.usual_pods())
        self._pks = {str(uid): pk for pk, uid, *_ in charged}
        if found:
            scheduler.charges |= {pk: charge for pk, charge in charges.items() if charge.leaf in found.ledger.way}
        self._policies.clear()
        self._runs, self._runners = None, Runners()
        self.scheduler, self._tree = scheduler, found.version if found else 0
        self.stops_somebody = bool(snapshot.stopped_leaves())
        self._clusters = {str(uid): name for uid, name in Cluster.objects.values_list("uid", "name")}
        self._wait(list(snapshot.waiting_jobs().filter(tree_version=self._tree).values(*_COLUMNS).order_by()))
        if found:
            scheduler.leaving = {each.job_id: each for each in snapshot.load_runners(snapshot.leaving_jobs(), found)}
            scheduler.left = {each.job_id: each for each in snapshot.load_runners(snapshot.left_jobs(), found)}
        self._last, self._loaded_at, self.meets_others = last, now, True
        self._known.clear()  # versions of a journal that may be another one now, such as that of a restored database
        self._failures_at = datetime.min.replace(tzinfo=now.tzinfo)

    def _follow(self, last: journal.Entry) -> bool:
        """False when it cannot be told what changed; so when the line read last is not there, or is another one."""
        holds = self._open_holds()
        entries = journal.after(last.version - 1, _MANY, but=_NO_NEWS)
        if not entries or len(entries) == _MANY or _identity(entries[0]) != _identity(last):
            return False
        entries = entries[1:]
        by_kind: dict[str, list[journal.Entry]] = defaultdict(list)
        for entry in entries:
            if entry.version not in self._known:
                by_kind[entry.kind].append(entry)
        self._known.clear()
        if by_kind.keys() & _ANEW or self._has_moved(by_kind):
            return False
        if not self._tell_clusters(by_kind["Cluster"]):
            return False
        self._tell_nodes(by_kind["Node"])
        uids = {e.object_uid for kind in _KINDS for e in by_kind.get(kind, ())}
        gone = {e.object_uid for kind in _KINDS for e in by_kind.get(kind, ()) if e.action == journal.Action.DELETED}
        for some in _chunks(sorted(uids)):
            self._tell_jobs(Job.objects.filter(uid__in=some))
        for uid in gone - {str(u) for u in Job.objects.filter(uid__in=gone).values_list("uid", flat=True)}:
            self._gone(uid)
        self._tell_locations(by_kind.get(CLAIM_LOCATION, ()))
        self._tell_holds(holds)
        if entries:
            self._last = entries[-1]
        return True

    def _tell_clusters(self, entries: Iterable[journal.Entry]) -> bool:
        uids = {entry.object_uid for entry in entries}
        if not uids:
            return True
        rows = {str(row.uid): row for row in Cluster.objects.defer("access", "permissions").filter(uid__in=uids)}
        for uid in uids - rows.keys():
            if (name := self._clusters.pop(uid, None)) is not None:
                if any(name in on for gang in self.scheduler.gangs.values() for _, on in gang.bound_to):
                    return False
                self.scheduler.places.drop_cluster(name)
        for uid, row in rows.items():
            if self._clusters.setdefault(uid, row.name) != row.name:
                return False
            self.scheduler.places.set_cluster(row.pk, snapshot.member_of(row))
        return True

    def _has_moved(self, by_kind: Mapping[str, Sequence[journal.Entry]]) -> bool:
        """Whether nodes may be elsewhere in their networks without a change of their own."""
        tables = [e for e in by_kind.get("ConfigMap", ()) if snapshot_topology.concerns(e.kind, e.namespace, e.name)]
        return bool(tables or by_kind.get("Cluster")) and snapshot_topology.whereabouts() != self._where

    def _tell_nodes(self, entries: Iterable[journal.Entry]) -> None:
        """A node's line has the cluster where others have the namespace."""
        wanted: dict[str, set[str]] = defaultdict(set)
        for entry in entries:
            wanted[entry.namespace].add(entry.name)
        for cluster, names in wanted.items():
            found = set()
            for some in _chunks(sorted(names)):
                for row in Node.objects.filter(cluster__name=cluster, name__in=some):
                    found.add(row.name)
                    self.scheduler.places.set_node(cluster, snapshot.facts_of(row, self._where))
            for name in names - found:
                self.scheduler.places.drop_node(cluster, name)
            for name in names:
                self._runners.node_changed(cluster, name)

    def _tell_jobs(self, rows: QuerySet[Job]) -> None:
        known, quota = list(rows.values(*_COLUMNS).order_by()), self.scheduler.quota
        for job in known:
            pk, charge = job["pk"], job["charge"]
            self._pks[str(job["uid"])] = pk
            self.meets_others |= job["tree_version"] != self._tree and job["state"] not in Job.FINISHED
            self.scheduler.drop(pk)
            self.scheduler.leaving.pop(pk, None)
            self.scheduler.left.pop(pk, None)
            if charge is None or quota is None or job["leaf"] not in quota.ledger.way:
                self.scheduler.release(pk)
            else:
                self.scheduler.charge(pk, Charge(job["leaf"], charge, job["preemptible"]))
        pks = [job["pk"] for job in known]
        self._runners.changed(pks)
        if self._runs is not None:
            runtimes.read_again(self._runs, pks)
        self._wait([job for job in known if snapshot.waits(job["state"], job["suspended"], job["deleting_at"])])
        moved = [job["pk"] for job in known if job["reclaim"] is not None]
        if quota and moved:
            for each in snapshot.load_runners(snapshot.leaving_jobs().filter(pk__in=moved), quota):
                self.scheduler.leaving[each.job_id] = each
            for each in snapshot.load_runners(snapshot.left_jobs().filter(pk__in=moved), quota):
                self.scheduler.left[each.job_id] = each

    def _tell_locations(self, entries: Iterable[journal.Entry]) -> None:
        """The data of these claims is on other clusters than before: the jobs that wait with them are read again."""
        moved = {f"{entry.namespace}/{entry.name}" for entry in entries}
        if not moved:
            return
        pks = sorted(gang.job_id for gang in self.scheduler.gangs.values() if not moved.isdisjoint(gang.claims))
        for start in range(0, len(pks), _CHUNK):
            self._tell_jobs(Job.objects.filter(pk__in=pks[start : start + _CHUNK]))

    def _wait(self, jobs: Sequence[Mapping[str, Any]]) -> None:
        """Those read under this tree; the others are read again before the next cycle."""
        here = [job for job in jobs if job["tree_version"] == self._tree and not self._is_set_aside(job)]
        for gang in snapshot.gangs_of(here, self._policies):
            self._pks[gang.uid] = gang.job_id
            self.scheduler.put(gang)

    def _try_again(self, pks: Sequence[int]) -> None:
        for pk in pks:
            self._set_aside[pk] = self._now
        for some in _chunks(pks):
            self._tell_jobs(Job.objects.filter(pk__in=some))
        for pk in pks:
            self._set_aside.pop(pk, None)

    def _is_set_aside(self, job: Mapping[str, Any]) -> bool:
        """Whether its placement was rejected a moment ago, by this process or another one."""
        if job["reason_code"] != Code.PLAN_REJECTED:
            self._set_aside.pop(job["pk"], None)
            return False
        return self._set_aside.setdefault(job["pk"], self._now + rejections.RETRY_AFTER) > self._now

    def _open_holds(self) -> dict[Hashable, Promise | None]:
        """What is held is no news in the journal: all that is open is looked through, which is what has no pods yet.

        Read with the journal at one moment: a hold that ends because its pods are on their nodes must not go before the nodes
        are known, nor stay when the charge of its job is gone. None for those that are known.
        """
        keys = Hold.objects.filter(released_at__isnull=True).order_by().values_list("job_uid", "attempt", "pk")
        found: dict[Hashable, Promise | None] = {}
        made: list[int] = []
        for uid, attempt, pk in keys:
            key = (str(uid), attempt)
            if key in self.scheduler.places.promises:
                found[key] = None
            else:
                made.append(pk)
        for some in _chunks(made):
            for hold in snapshot.open_holds().filter(pk__in=some):
                promise = snapshot.promise_of(hold, hold.cluster.name)
                found[promise.key] = promise
        return found

    def _tell_holds(self, holds: Mapping[Hashable, Promise | None]) -> None:
        places = self.scheduler.places
        for key in places.promises.keys() - holds.keys():
            places.release(key)
        places.hold_all(promise for promise in holds.values() if promise)

    def _gone(self, uid: str) -> None:
        pk = self._pks.pop(uid, None)
        if pk is not None:
            self.scheduler.drop(pk)
            self.scheduler.release(pk)
            self._runners.changed([pk])
            if self._runs is not None:
                self._runs.by_job.pop(pk, None)


_ANEW = frozenset({"PropagationPolicy", "ClusterPropagationPolicy", "Queue", "ElasticQuotaTree"})
"""Kinds whose change may concern everybody."""
_NO_NEWS = ("Event", WORK)
"""Kinds of which nothing is known here."""
_KINDS = frozenset(kind.resource.kind for kind in registry.everything())


def _identity(entry: journal.Entry) -> tuple[object, ...]:
    return entry.version, entry.kind, entry.object_uid, entry.at


def _chunks(names: Sequence[T]) -> Iterable[Sequence[T]]:
    return (names[i : i + _CHUNK] for i in range(0, len(names), _CHUNK))
