"""A PropagationPolicy, read: which jobs it claims, where they may go, how they are moved.

Accepts the manifests of both API groups and the old spellings (``purgeMode: Immediately`` and ``Graciously``). A policy
that can never act is refused with the field and the reason, not stored and ignored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fleet.errors import FieldFault
from fleet.kube import selectors
from jobs.core.failover import PurgeMode
from jobs.core.faults import Faults
from jobs.core.taints import Toleration

GROUPS = ("policy.one.alibabacloud.com/v1alpha1", "policy.karmada.io/v1alpha1")
KINDS = ("PropagationPolicy", "ClusterPropagationPolicy")
_WITHOUT_EFFECT = (
    "association", "activationPreference", "dependentOverrides", "preemption", "preserveResourcesOnDeletion",
    "schedulerName", "suspension.dispatching", "suspension.dispatchingOnClusters",
    "failover.application.statePreservation", "failover.application.gracePeriodSeconds",
    "failover.cluster.statePreservation", "placement.replicaScheduling.weightPreference",
)  # fmt: skip
_OLD_MODES = {"Immediately": PurgeMode.DIRECTLY, "Graciously": PurgeMode.GRACEFULLY}
_KEYS = (
    "resourceSelectors", "propagateDeps", "placement", "failover", "suspension", "priority", "preemption",
    "conflictResolution", "association", "activationPreference", "schedulerName", "dependentOverrides",
    "preserveResourcesOnDeletion",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Selector:
    """One entry of resourceSelectors; empty fields select everything of the kind."""

    api_version: str
    kind: str
    namespace: str = ""
    name: str = ""
    labels: Mapping[str, Any] | None = None

    def matches(self, api_version: str, kind: str, namespace: str, name: str, labels: Mapping[str, str]) -> bool:
        return (
            (self.api_version, self.kind) == (api_version, kind)
            and self.namespace in ("", namespace)
            and self.name in ("", name)
            and (self.labels is None or selectors.matches_label_selector(self.labels, labels))
        )

    @property
    def precision(self) -> int:
        """A name is closer than labels, labels are closer than the kind alone."""
        return 2 if self.name else 1 if self.labels is not None else 0


@dataclass(frozen=True, slots=True)
class Affinity:
    """Which clusters are in question; empty fields do not restrict."""

    names: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    labels: Mapping[str, Any] | None = None
    fields: tuple[Mapping[str, Any], ...] = ()

    def allows(self, name: str, labels: Mapping[str, str], places: Mapping[str, str]) -> bool:
        """``places`` are the cluster's provider, region and zone."""
        if name in self.exclude or (self.names and name not in self.names):
            return False
        if self.labels is not None and not selectors.matches_label_selector(self.labels, labels):
            return False
        wanted = {"matchExpressions": list(self.fields)}
        return not self.fields or selectors.matches_label_selector(wanted, {k: v for k, v in places.items() if v})


@dataclass(frozen=True, slots=True)
class PolicySpec:
    selectors: tuple[Selector, ...] = ()
    priority: int = 0
    propagate_deps: bool = False
    affinities: tuple[Affinity, ...] = (Affinity(),)
    """Ordered: the next is asked only when no cluster of the one before fits."""
    tolerations: tuple[Toleration, ...] = ()
    suspended: bool = False
    application_toleration_s: float | None = None
    """None: a failed job stays failed."""
    application_purge: PurgeMode = PurgeMode.GRACEFULLY
    cluster_purge: PurgeMode = PurgeMode.GRACEFULLY
    overwrite: bool = False
    faults: tuple[FieldFault, ...] = field(default=())


def read(manifest: Mapping[str, Any], known_kinds: Sequence[tuple[str, str]]) -> PolicySpec:
    """The policy in ``manifest``; never raises. ``known_kinds`` are the (apiVersion, kind) pairs Convoy runs."""
    faults = Faults()
    spec = faults.mapping(manifest.get("spec"), "spec", required=True)
    for key in spec:
        if key not in _KEYS:
            faults.add(f"spec.{key}", f"is not known; known are {', '.join(_KEYS)}")
    placement = faults.mapping(spec.get("placement"), "spec.placement")
    failover = faults.mapping(spec.get("failover"), "spec.failover")
    application = faults.mapping(failover.get("application"), "spec.failover.application")
    conditions = faults.mapping(application.get("decisionConditions"), "spec.failover.application.decisionConditions")
    faults.one_of(spec.get("conflictResolution"), "spec.conflictResolution", ("Abort", "Overwrite"))
    _check_replica_scheduling(placement, faults)
    _check_spread(placement, faults)
    tolerance = faults.whole(
        conditions.get("tolerationSeconds"),
        "spec.failover.application.decisionConditions.tolerationSeconds",
        default=300,
    )
    return PolicySpec(
        selectors=read_selectors(spec.get("resourceSelectors"), known_kinds, faults),
        priority=faults.whole(spec.get("priority"), "spec.priority", default=0, at_least=-(2**31)),
        propagate_deps=faults.flag(spec.get("propagateDeps"), "spec.propagateDeps"),
        affinities=_affinities(placement, faults),
        tolerations=_tolerations(placement.get("clusterTolerations"), faults),
        suspended=faults.flag(
            faults.mapping(spec.get("suspension"), "spec.suspension").get("scheduling"), "spec.suspension.scheduling"
        ),
        application_toleration_s=float(tolerance) if "application" in failover else None,
        application_purge=_purge(application, "spec.failover.application", faults),
        cluster_purge=_purge(
            faults.mapping(failover.get("cluster"), "spec.failover.cluster"), "spec.failover.cluster", faults
        ),
        overwrite=spec.get("conflictResolution") == "Overwrite",
        faults=tuple(faults.found),
    )


def read_selectors(value: object, known: Sequence[tuple[str, str]], faults: Faults) -> tuple[Selector, ...]:
    path = "spec.resourceSelectors"
    if not isinstance(value, list) or not value:
        faults.add(path, "must list at least one selector: a policy that selects nothing can never act")
        return ()
    found = []
    for i, entry in enumerate(value):
        body = faults.mapping(entry, f"{path}[{i}]", required=True)
        kind = (str(body.get("apiVersion", "")), str(body.get("kind", "")))
        if kind not in known:
            runs = ", ".join(f"{v} {k}" for v, k in known)
            faults.add(
                f"{path}[{i}]", f"selects {' '.join(kind).strip() or 'no kind'}, which Convoy does not run ({runs})"
            )
        labels = body.get("labelSelector")
        check_labels(labels, f"{path}[{i}].labelSelector", faults)
        found.append(Selector(*kind, str(body.get("namespace") or ""), str(body.get("name") or ""), labels))
    return tuple(found)


def check_labels(value: object, path: str, faults: Faults) -> None:
    if value is None:
        return
    try:
        selectors.matches_label_selector(faults.mapping(value, path), {})
    except (selectors.SelectorError, TypeError, AttributeError, KeyError) as e:
        faults.add(path, f"is not a label selector: {e}")


def _affinities(placement: Mapping[str, Any], faults: Faults) -> tuple[Affinity, ...]:
    single, ordered = placement.get("clusterAffinity"), placement.get("clusterAffinities")
    if single is not None and ordered is not None:
        faults.add("spec.placement.clusterAffinities", "cannot be given together with clusterAffinity")
    if ordered is None:
        return (read_affinity(single, "spec.placement.clusterAffinity", faults),)
    if not isinstance(ordered, list) or not ordered:
        faults.add("spec.placement.clusterAffinities", "must be a list of at least one term")
        return (Affinity(),)
    return tuple(each for i, term in enumerate(ordered) for each in _tiers(term, i, faults))


def _tiers(term: object, i: int, faults: Faults) -> list[Affinity]:
    """A term, then the tiers it overflows into: for jobs that are never split, further terms."""
    path = f"spec.placement.clusterAffinities[{i}]"
    found = [read_affinity(term, path, faults)]
    tiers = term.get("overflowAffinities") if isinstance(term, dict) else None
    if tiers is not None and not isinstance(tiers, list):
        faults.add(f"{path}.overflowAffinities", "must be a list of terms")
        return found
    return found + [read_affinity(t, f"{path}.overflowAffinities[{n}]", faults) for n, t in enumerate(tiers or ())]


def read_affinity(value: object, path: str, faults: Faults) -> Affinity:
    body = faults.mapping(value, path)
    check_labels(body.get("labelSelector"), f"{path}.labelSelector", faults)
    fields = faults.mapping(body.get("fieldSelector"), f"{path}.fieldSelector").get("matchExpressions") or []
    check_labels({"matchExpressions": fields}, f"{path}.fieldSelector", faults)
    return Affinity(
        names=_names(body.get("clusterNames"), f"{path}.clusterNames", faults),
        exclude=_names(body.get("exclude"), f"{path}.exclude", faults),
        labels=body.get("labelSelector"),
        fields=tuple(fields) if isinstance(fields, list) else (),
    )


def _names(value: object, path: str, faults: Faults) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        faults.add(path, "must be a list of cluster names")
        return ()
    return tuple(value)


def _tolerations(value: object, faults: Faults) -> tuple[Toleration, ...]:
    path = "spec.placement.clusterTolerations"
    if value is None:
        return ()
    if not isinstance(value, list):
        faults.add(path, "must be a list")
        return ()
    found = []
    for i, entry in enumerate(value):
        body = faults.mapping(entry, f"{path}[{i}]", required=True)
        faults.one_of(body.get("operator"), f"{path}[{i}].operator", ("Equal", "Exists"))
        seconds = body.get("tolerationSeconds")
        limit = faults.whole(seconds, f"{path}[{i}].tolerationSeconds", default=0)
        found.append(
            Toleration(
                str(body.get("key") or ""),
                str(body.get("operator") or "Equal"),
                str(body.get("value") or ""),
                str(body.get("effect") or ""),
                None if seconds is None else float(limit),
            )
        )
    return tuple(found)


_DIVISIONS = ("Aggregated", "Weighted")
_SPREADS = ("cluster", "region", "zone", "provider")


def _check_replica_scheduling(placement: Mapping[str, Any], faults: Faults) -> None:
    path = "spec.placement.replicaScheduling"
    body = faults.mapping(placement.get("replicaScheduling"), path)
    faults.one_of(body.get("replicaSchedulingType"), f"{path}.replicaSchedulingType", ("Divided", "Duplicated"))
    faults.one_of(body.get("replicaDivisionPreference"), f"{path}.replicaDivisionPreference", _DIVISIONS)
    faults.one_of(body.get("customSchedulingType"), f"{path}.customSchedulingType", ("Gang",))


def _check_spread(placement: Mapping[str, Any], faults: Faults) -> None:
    spread = placement.get("spreadConstraints")
    if spread is not None and not isinstance(spread, list):
        faults.add("spec.placement.spreadConstraints", "must be a list")
        return
    for i, entry in enumerate(spread or ()):
        path = f"spec.placement.spreadConstraints[{i}]"
        body = faults.mapping(entry, path, required=True)
        faults.one_of(body.get("spreadByField"), f"{path}.spreadByField", _SPREADS)
        if body.get("spreadByField") and body.get("spreadByLabel"):
            faults.add(f"{path}.spreadByLabel", "cannot be given together with spreadByField")
        least = faults.whole(body.get("minGroups"), f"{path}.minGroups", default=1)
        most = faults.whole(body.get("maxGroups"), f"{path}.maxGroups", default=max(least, 1), at_least=1)
        if least > 1:
            faults.add(f"{path}.minGroups", f"must be 1, not {least}: a job runs on one cluster, whole")
        elif most < least:
            faults.add(f"{path}.maxGroups", f"must not be less than minGroups, {least}")


def _purge(body: Mapping[str, Any], path: str, faults: Faults) -> PurgeMode:
    value = body.get("purgeMode") or PurgeMode.GRACEFULLY.value
    mode = _OLD_MODES.get(value, value) if isinstance(value, str) else value
    try:
        return PurgeMode(mode)
    except ValueError:
        faults.add(f"{path}.purgeMode", f"must be one of {', '.join(PurgeMode)}, not {value!r}")
        return PurgeMode.GRACEFULLY


def warnings(manifest: Mapping[str, Any]) -> list[str]:
    """What a person should know of an accepted policy: old spellings, and words of Karmada that do nothing here."""
    spec = manifest["spec"]
    failover = spec.get("failover") or {}
    told = []
    for part in ("application", "cluster"):
        value = (failover.get(part) or {}).get("purgeMode")
        if value in _OLD_MODES:
            told.append(f"spec.failover.{part}.purgeMode: {value} is an old spelling of {_OLD_MODES[value]}")
    told += _of_sharing((spec.get("placement") or {}).get("replicaScheduling") or {})
    for path in _WITHOUT_EFFECT:
        value = spec
        for word in path.split("."):
            value = value.get(word) if isinstance(value, dict) else None
        if value:
            told.append(f"spec.{path} has no effect in Convoy")
    return told


def _of_sharing(scheduling: Mapping[str, Any]) -> list[str]:
    path = "spec.placement.replicaScheduling"
    if scheduling.get("replicaSchedulingType") == "Duplicated":
        return [f"{path}.replicaSchedulingType: Duplicated makes no second copy: a job runs once"]
    if scheduling.get("replicaDivisionPreference") == "Weighted":
        return [f"{path}.replicaDivisionPreference: Weighted divides nothing: a job runs on one cluster, whole"]
    return []


@dataclass(frozen=True, slots=True)
class Candidate:
    """A policy in question for a job; ``ref`` is whatever the caller knows it by."""

    ref: Any
    namespace: str
    name: str
    spec: PolicySpec


def match(
    candidates: Sequence[Candidate],
    *,
    api_version: str,
    kind: str,
    namespace: str,
    name: str,
    labels: Mapping[str, str],
) -> Candidate | None:
    """The policy that claims the job: namespaced before cluster-wide, higher priority, closer selector, then by name."""

    def rank(each: Candidate) -> tuple[bool, int, int, str] | None:
        hits = [s.precision for s in each.spec.selectors if s.matches(api_version, kind, namespace, name, labels)]
        if not hits or each.namespace not in ("", namespace):
            return None
        return (not each.namespace, -each.spec.priority, -max(hits), each.name)

    ranked = [(r, i) for i, each in enumerate(candidates) if (r := rank(each)) is not None]
    return candidates[min(ranked)[1]] if ranked else None
