"""The scheduler one process keeps between cycles, brought up to date from the journal by loading only what changed.

Used by the process that holds the scheduler lease. A change of a policy, a queue or the quota tree, a compacted journal, and
anything else that cannot be followed line by line load everything anew. A stale cache costs no more than a lost claim: what a
plan may do is decided by the conditional updates that write it.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from django.conf import settings

from fleet.changes import journal
from fleet.changes.repeatable_read import repeatable_read
from fleet.db import prepared
from fleet.db.prepared import KEY, TEXT, UID
from fleet.models import Cluster, Hold, Node
from fleet.services.clusters import node_exclusions
from fleet.services.clusters.node_exclusions import NODE_EXCLUSION
from jobs import queries, snapshot, snapshot_topology
from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.admission.plans import Placed
from jobs.core.gang.types import AdmittedGang, CapacityHold
from jobs.core.policies.propagation import PolicySpec
from jobs.core.preemption.cost import Loss
from jobs.core.reasons import Code
from jobs.core.scheduling.backfill_reservation import Runs
from jobs.core.scheduling.growth import Grown
from jobs.core.scheduling.scheduler import Scheduler
from jobs.events import CLAIM_LOCATION, WORK
from jobs.kinds import registry
from jobs.models import Job
from jobs.services.scheduling import known_ends, plan_failures, runtimes
from jobs.services.scheduling.demand import entitlements
from jobs.services.scheduling.preemption_candidates import PreemptionCandidates
from jobs.snapshot_rows import capacity_hold_of, charge_of
from jobs.snapshot_running import load_parts
from quotas.core.trees.tree import ExcessPolicy

_MAX_LINES = 20_000
"""Journal lines beyond which everything is loaded anew."""
_WRITERS_S = 1.0
"""How long a refresh waits for journal entries of uncommitted transactions: the one that requested the cycle may follow."""
_CHUNK = 500
_COLUMNS = (
    *snapshot.WAITING,
    "reason_code",
    "tree_version",
    "resize",
    "shrinks",
    "elastic",
    "suspended",
    "deleting_at",
)
_JOBS = prepared.Rows(lambda param: Job.objects.filter(pk__in=param("pks", KEY)).order_by().values_list(*_COLUMNS))
_JOBS_BY_UID = prepared.Rows(
    lambda param: Job.objects.filter(uid__in=param("uids", UID)).order_by().values_list(*_COLUMNS)
)
_NODES = prepared.Rows(
    lambda param: Node.objects.filter(cluster__name=param("cluster", TEXT), name__in=param("names", TEXT))
)
_OPEN_HOLDS = prepared.Rows(
    lambda _: (
        Hold.objects.filter(released_at__isnull=True).order_by().values_list("job_uid", "attempt", "resized_at", "pk")
    )
)
_HOLDS = prepared.Rows(lambda param: snapshot.open_holds().filter(pk__in=param("pks", KEY)))
T = TypeVar("T")


class SchedulerCache:
    """The scheduler and the journal version it is up to date with. Used by one thread at a time."""

    def __init__(self) -> None:
        self.scheduler = Scheduler(guard=plan_failures.guard)
        self._last: journal.Entry | None = None
        """The newest journal line applied."""
        self._tree = 0
        self._loaded_at: datetime | None = None
        self._failures_at = datetime.min.replace(tzinfo=UTC)
        self._clusters: dict[str, str] = {}
        """Cluster uid -> name."""
        self._pks: dict[str, int] = {}
        self._policies: dict[int, PolicySpec] = {}
        self._topology = snapshot_topology.Whereabouts()
        self._excluded: dict[tuple[int, str], str] = {}
        """(cluster id, node) -> until when and why it takes no pods of anybody."""
        self._runs: Runs | None = None
        """Loaded when first read, and kept up to date from then on."""
        self._candidates = PreemptionCandidates()
        self.has_stopped_queues = False
        """Whether a queue is stopped, so that its running jobs have to be evicted."""
        self.has_removed_leaves = False
        """Whether a running job has the charge of a leaf that was removed, so that it has to be evicted."""
        self.takes_back_excess = False
        """Whether some node of the quota tree evicts what is above its max."""
        self.has_stale_entitlements = False
        """Whether a job whose quota leaf was resolved under a former tree was left out."""
        self._set_aside: dict[int, datetime] = {}
        """Jobs whose placement could not be planned or stored -> until when they are left out."""
        self._now = datetime.min.replace(tzinfo=UTC)
        self._growing: set[int] = set()
        """Jobs with a growth that waits."""
        self._elastic: set[int] = set()
        """Running jobs that the scheduler may resize."""
        self._starters: set[int] = set()
        """Waiting jobs that may start with fewer pods than they ask for."""
        self._shrinking: set[int] = set()
        """Jobs that give back pods, or did a moment ago."""
        self._resized_at: dict[Hashable, datetime] = {}
        """When the known holds were changed by a resize last, by their keys; those that never were are not here."""
        self._own_versions: set[int] = set()
        """Journal versions written by our own plan; skipped when catching up."""

    def refresh(self, now: datetime) -> Scheduler:
        """Applies everything committed until now and returns the scheduler."""
        self._now = now
        due = [pk for pk, until in self._set_aside.items() if not now < until <= now + _rejected_for()]
        with repeatable_read(_WRITERS_S):
            if self._last is None or self._is_stale(now) or not self._follow(self._last):
                self._load(now)
            self._update_parts(now)
            if due:
                self._retry_rejected(due)
            if (
                not timedelta()
                <= now - self._failures_at
                < timedelta(seconds=settings.CONVOY_SCHEDULER.failures_refresh_s)
            ):
                self.scheduler.places.engine.set_failures(snapshot.failures(now))
                self._failures_at = now
        return self.scheduler

    def reload_unplaced(self, unplaced: Iterable[Placed]) -> None:
        """Releases what the plan gave to gangs that could not be placed as planned, and reads their jobs again."""
        pks = []
        for placed in unplaced:
            pks.append(placed.gang.job_id)
            for hold in placed.placement.holds(placed.gang):
                self.scheduler.places.release(hold.key)
            self.scheduler.release(placed.gang.job_id)
        if pks:
            self._update_jobs(_JOBS.values(pks=pks))

    @property
    def has_elastic(self) -> bool:
        """Whether a running job may get more pods by itself."""
        return bool(self._elastic)

    @property
    def has_small_starters(self) -> bool:
        return bool(self._starters)

    @property
    def has_growths(self) -> bool:
        """Whether a job may have a growth that waits."""
        return bool(self._growing)

    def reload_ungrown(self, growths: Sequence[Grown]) -> None:
        """Takes back what growths were given that could not be written, and reads their jobs again."""
        pks = [grown.growth.gang.job_id for grown in growths]
        for grown in growths:
            self.scheduler.places.release(grown.hold.key)
        if pks:
            self._update_jobs(_JOBS.values(pks=pks))

    def applied(self, placed: Collection[int], versions: Iterable[int]) -> None:
        """The plan was written: these jobs are placed, and these journal versions hold nothing else that has to be read."""
        self._own_versions.update(versions)
        self.scheduler.started(placed)
        self._candidates.changed(placed)
        if self._runs is not None:
            runtimes.read_again(self._runs, placed)

    def runs(self) -> Runs:
        """Running gangs and when each is expected to end, as of the last refresh."""
        if self._runs is None:
            self._runs = runtimes.load(self._now)
        return self._runs

    def _ends(self) -> Mapping[int, datetime]:
        return known_ends.load(self._now)

    def preemption_candidates(self) -> Sequence[AdmittedGang]:
        """Running gangs that may be preempted; none without a quota tree."""
        quota, held = self.scheduler.quota, self.scheduler.places.holds
        return list(self._candidates.load(quota, held.keys()).values()) if quota else []

    def preemption_costs(self) -> Mapping[int, Loss]:
        """What stopping each candidate would cost, by job, as of the last `preemption_candidates`."""
        return self._candidates.costs

    def invalidate(self) -> None:
        """The next refresh loads everything anew."""
        self._last = None

    def _is_stale(self, now: datetime) -> bool:
        if self._loaded_at is None or not timedelta() <= now - self._loaded_at < timedelta(
            seconds=settings.CONVOY_SCHEDULER.cache_max_age_s
        ):
            return True
        return snapshot.tree_version() != self._tree

    def _load(self, now: datetime) -> None:
        last = journal.newest(but=_IGNORED)
        charged = list(snapshot.charged_jobs().values_list("pk", "uid", "leaf", "charge", "preemptible"))
        charges = {pk: charge_of(pk, leaf, amounts, preemptible) for pk, _, leaf, amounts, preemptible in charged}
        quota = snapshot.load_quota(charges.values())
        self._topology, sites = snapshot_topology.whereabouts(), snapshot.load_sites()
        self._excluded = node_exclusions.for_everyone()
        places = PlacementCache(sites, settings.CONVOY_WEIGHTS)
        scheduler = Scheduler(quota, places, settings.CONVOY_CYCLE, plan_failures.guard)
        scheduler.places.engine.expect(snapshot.usual_pods())
        scheduler.ends = self._ends
        self._pks = {str(uid): pk for pk, uid, *_ in charged}
        self._growing = set(queries.growing_jobs().values_list("pk", flat=True))
        self._elastic = set(queries.elastic_jobs().values_list("pk", flat=True))
        self._starters = set(queries.small_starters().values_list("pk", flat=True))
        self._shrinking = set(snapshot.shrinking_jobs().values_list("pk", flat=True))
        held = Hold.objects.filter(released_at=None, resized_at__isnull=False).order_by()
        self._resized_at = {
            (str(uid), n): at for uid, n, at in held.values_list("job_uid", "attempt", "resized_at") if at
        }
        if quota:
            scheduler.charges |= {pk: charge for pk, charge in charges.items() if charge.leaf in quota.ledger.path_rows}
        self._policies.clear()
        self._runs, self._candidates = None, PreemptionCandidates()
        self.scheduler, self._tree = scheduler, quota.version if quota else 0
        self.has_stopped_queues = bool(snapshot.stopped_leaves())
        self.has_removed_leaves = any(not charge.leaf for charge in charges.values())
        nodes = quota.ledger.tree.nodes if quota else ()
        self.takes_back_excess = any(node.attributes.excess is ExcessPolicy.TAKE_BACK for node in nodes)
        self._clusters = {str(uid): name for uid, name in Cluster.objects.values_list("uid", "name")}
        self._enqueue(list(snapshot.waiting_jobs().filter(tree_version=self._tree).values(*_COLUMNS).order_by()))
        if quota:
            scheduler.evicting = {each.job_id: each for each in snapshot.load_runners(snapshot.leaving_jobs(), quota)}
            scheduler.evicted = {each.job_id: each for each in snapshot.load_runners(snapshot.left_jobs(), quota)}
        self._last, self._loaded_at = last, now
        self.has_stale_entitlements = entitlements.has_stale(self._tree)
        self._own_versions.clear()  # versions of a journal that may be another one now, such as that of a restored database
        self._failures_at = datetime.min.replace(tzinfo=now.tzinfo)

    def _follow(self, last: journal.Entry) -> bool:
        """Applies the journal after `last`; False when it cannot: too many lines, or the last one is missing or another one."""
        holds = self._open_holds()
        entries = journal.after(last.version - 1, _MAX_LINES, but=_IGNORED)
        if not entries or len(entries) == _MAX_LINES or _identity(entries[0]) != _identity(last):
            return False
        entries = entries[1:]
        by_kind: dict[str, list[journal.Entry]] = defaultdict(list)
        for entry in entries:
            if entry.version not in self._own_versions:
                by_kind[entry.kind].append(entry)
        self._own_versions.clear()
        if by_kind.keys() & _RELOADING or self._topology_changed(by_kind):
            return False
        if not self._update_clusters(by_kind["Cluster"]):
            return False
        if excluded := by_kind.get(NODE_EXCLUSION, []):
            self._excluded = node_exclusions.for_everyone()
        self._update_nodes([*by_kind["Node"], *excluded])
        uids = {e.object_uid for kind in _KINDS for e in by_kind.get(kind, ())}
        uids |= {e.object_uid for e in excluded}  # the job that it is excluded for; of none for everyone
        gone = {e.object_uid for kind in _KINDS for e in by_kind.get(kind, ()) if e.action == journal.Action.DELETED}
        for some in _chunks(sorted(uids)):
            self._update_jobs(_JOBS_BY_UID.values(uids=list(some)))
        for uid in gone - {str(u) for u in Job.objects.filter(uid__in=gone).values_list("uid", flat=True)}:
            self._drop(uid)
        self._update_claim_locations(by_kind.get(CLAIM_LOCATION, ()))
        self._update_holds(holds)
        if entries:
            self._last = entries[-1]
        return True

    def _update_clusters(self, entries: Iterable[journal.Entry]) -> bool:
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

    def _topology_changed(self, by_kind: Mapping[str, Sequence[journal.Entry]]) -> bool:
        """Whether nodes may have moved in their network topology without a change of their own rows."""
        tables = [e for e in by_kind.get("ConfigMap", ()) if snapshot_topology.concerns(e.kind, e.namespace, e.name)]
        return bool(tables or by_kind.get("Cluster")) and snapshot_topology.whereabouts() != self._topology

    def _update_nodes(self, entries: Iterable[journal.Entry]) -> None:
        """The journal line of a node has the cluster in place of a namespace."""
        names_by_cluster: dict[str, set[str]] = defaultdict(set)
        for entry in entries:
            names_by_cluster[entry.namespace].add(entry.name)
        for cluster, names in names_by_cluster.items():
            updated = set()
            for some in _chunks(sorted(names)):
                for row in _NODES.objects(cluster=cluster, names=list(some)):
                    updated.add(row.name)
                    self.scheduler.places.set_node(cluster, snapshot.facts_of(row, self._topology, self._excluded))
            for name in names - updated:
                self.scheduler.places.drop_node(cluster, name)
            for name in names:
                self._candidates.node_changed(cluster, name)

    def _update_jobs(self, rows: Iterable[Sequence[Any]]) -> None:
        """``rows`` are the `_COLUMNS` of jobs as they are now."""
        known, quota = [dict(zip(_COLUMNS, row, strict=True)) for row in rows], self.scheduler.quota
        for job in known:
            pk, charge = job["pk"], job["charge"]
            self._pks[str(job["uid"])] = pk
            self.has_stale_entitlements |= job["tree_version"] != self._tree and job["state"] not in Job.FINISHED
            self.has_removed_leaves |= charge is not None and not job["leaf"]
            (self._growing.discard if job["resize"] is None else self._growing.add)(pk)
            is_elastic = job["elastic"] and job["state"] == Job.State.RUNNING
            (self._elastic.add if is_elastic else self._elastic.discard)(pk)
            starts_small = job["elastic"] and job["state"] == Job.State.QUEUED
            (self._starters.add if starts_small else self._starters.discard)(pk)
            (self._shrinking.discard if job["shrinks"] is None else self._shrinking.add)(pk)
            self.scheduler.drop(pk)
            self.scheduler.evicting.pop(pk, None)
            self.scheduler.evicted.pop(pk, None)
            if charge is None or quota is None or job["leaf"] not in quota.ledger.path_rows:
                self.scheduler.release(pk)
            else:
                self.scheduler.charge(pk, charge_of(pk, job["leaf"], charge, job["preemptible"]))
        pks = [job["pk"] for job in known]
        self._candidates.changed(pks)
        if self._runs is not None:
            runtimes.read_again(self._runs, pks)
        self._enqueue([job for job in known if snapshot.waits(job["state"], job["suspended"], job["deleting_at"])])
        moved = [job["pk"] for job in known if job["reclaim"] is not None]
        if quota and moved:
            for each in snapshot.load_runners(snapshot.leaving_jobs().filter(pk__in=moved), quota):
                self.scheduler.evicting[each.job_id] = each
            for each in snapshot.load_runners(snapshot.left_jobs().filter(pk__in=moved), quota):
                self.scheduler.evicted[each.job_id] = each

    def _update_parts(self, now: datetime) -> None:
        """Reads in each cycle which pods are leaving still: they go one by one."""
        quota, self.scheduler.parts = self.scheduler.quota, []
        if quota and self._shrinking:
            rows = snapshot.charged_jobs().filter(pk__in=self._shrinking)
            kept_for = timedelta(seconds=settings.CONVOY_CYCLE.nomination_s)
            self.scheduler.parts = load_parts(rows, quota, now, kept_for)

    def _update_claim_locations(self, entries: Iterable[journal.Entry]) -> None:
        """Reads waiting jobs again whose volume claims have their data on other clusters than before."""
        moved = {f"{entry.namespace}/{entry.name}" for entry in entries}
        if not moved:
            return
        pks = sorted(gang.job_id for gang in self.scheduler.gangs.values() if not moved.isdisjoint(gang.claims))
        for start in range(0, len(pks), _CHUNK):
            self._update_jobs(_JOBS.values(pks=pks[start : start + _CHUNK]))

    def _enqueue(self, jobs: Sequence[Mapping[str, Any]]) -> None:
        """Enqueues jobs resolved under the tree in force; the cycle resolves the others again before it plans."""
        here = [job for job in jobs if job["tree_version"] == self._tree and not self._is_set_aside(job)]
        for gang in snapshot.gangs_of(here, self._policies, self._cannot_be_read):
            self._pks[gang.uid] = gang.job_id
            self.scheduler.put(gang)

    def _cannot_be_read(self, pk: int, error: Exception) -> None:
        self.scheduler.failed[pk] = plan_failures.words(error)

    def _retry_rejected(self, pks: Sequence[int]) -> None:
        for pk in pks:
            self._set_aside[pk] = self._now
        for some in _chunks(pks):
            self._update_jobs(_JOBS.values(pks=list(some)))
        for pk in pks:
            self._set_aside.pop(pk, None)

    def _is_set_aside(self, job: Mapping[str, Any]) -> bool:
        """Whether planning or storing its placement failed a moment ago (`rejected_retry_s`), here or in another process."""
        if job["reason_code"] != Code.PLAN_REJECTED:
            self._set_aside.pop(job["pk"], None)
            return False
        return self._set_aside.setdefault(job["pk"], self._now + _rejected_for()) > self._now

    def _open_holds(self) -> dict[Hashable, CapacityHold | None]:
        """Every open hold by key; None for those already known. Holds are not journalled; few are open: those without pods.

        Read in the same snapshot of the database as the journal: a hold that ends because its pods are bound must not go before
        the node rows that count those pods, nor outlive the charge of its job.
        """
        holds: dict[Hashable, CapacityHold | None] = {}
        new: list[int] = []
        for uid, attempt, resized_at, pk in _OPEN_HOLDS.values():
            key = (str(uid), attempt)
            if key in self.scheduler.places.holds and (resized_at is None or self._resized_at.get(key) == resized_at):
                holds[key] = None
                continue
            new.append(pk)
            if resized_at is not None:
                self._resized_at[key] = resized_at
        for some in _chunks(new):
            for hold in _HOLDS.objects(pks=list(some)):
                capacity_hold = capacity_hold_of(hold, hold.cluster.name)
                holds[capacity_hold.key] = capacity_hold
        return holds

    def _update_holds(self, holds: Mapping[Hashable, CapacityHold | None]) -> None:
        places = self.scheduler.places
        for key in places.holds.keys() - holds.keys():
            places.release(key)
            self._resized_at.pop(key, None)
        places.hold_all(hold for hold in holds.values() if hold)

    def _drop(self, uid: str) -> None:
        pk = self._pks.pop(uid, None)
        if pk is not None:
            self._growing.discard(pk)
            self._shrinking.discard(pk)
            self._elastic.discard(pk)
            self._starters.discard(pk)
            self.scheduler.drop(pk)
            self.scheduler.release(pk)
            self._candidates.changed([pk])
            if self._runs is not None:
                runtimes.forget(self._runs, pk)


_RELOADING = frozenset({"PropagationPolicy", "ClusterPropagationPolicy", "Queue", "ElasticQuotaTree"})
"""Kinds whose change may concern every job."""
_IGNORED = ("Event", WORK)
"""Kinds of which the cache holds nothing."""
_KINDS = frozenset(kind.resource.kind for kind in registry.everything())


def _identity(entry: journal.Entry) -> tuple[object, ...]:
    return entry.version, entry.kind, entry.object_uid, entry.at


def _rejected_for() -> timedelta:
    return timedelta(seconds=settings.CONVOY_SCHEDULER.rejected_retry_s)


def _chunks(names: Sequence[T]) -> Iterable[Sequence[T]]:
    return (names[i : i + _CHUNK] for i in range(0, len(names), _CHUNK))
