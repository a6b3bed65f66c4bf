"""A PropagationPolicy, read: which jobs it claims, where they may go, how they are moved.

Accepts the manifests of both API groups and the old spellings (``purgeMode: Immediately`` and ``Graciously``). A policy
that can never act is refused with the field and the reason, not stored and ignored.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fleet.core import fits
from fleet.errors import FieldFault
from fleet.kube.requests import selectors
from jobs.core.division import parsing
from jobs.core.division.replicas import Strategy
from jobs.core.failover.causes import BUDGETED, Cause
from jobs.core.failover.rules import PurgeMode
from jobs.core.manifest_fields import Faults
from jobs.core.policies import data_placement, preferences, state_preservation, unreachable
from jobs.core.policies.state_preservation import StateRule
from jobs.core.policies.unreachable import Unreachable
from jobs.core.taints import Toleration

GROUPS = ("policy.one.alibabacloud.com/v1alpha1", "policy.karmada.io/v1alpha1")
KINDS = ("PropagationPolicy", "ClusterPropagationPolicy")
_WITHOUT_EFFECT = (
    "association", "activationPreference", "dependentOverrides", "preemption", "preserveResourcesOnDeletion",
    "schedulerName", "suspension.dispatching", "suspension.dispatchingOnClusters",
    "failover.application.gracePeriodSeconds",
)  # fmt: skip
MAX_ATTEMPTS = "convoy.dev/max-attempts"
"""Annotation: how many failures end a job of this policy."""
FAILURE_BUDGETS = "convoy.dev/failure-budgets"
"""Annotation: how many failures of a cause end a job of this policy."""
COOL_OFFS = "convoy.dev/cool-offs"
"""Annotation: for how many seconds a cluster is excluded after a failure of a cause there."""
_ATTEMPTS = re.compile(r"[1-9][0-9]{0,2}")
_AMOUNTS = {
    FAILURE_BUDGETS: (_ATTEMPTS, ("COUNT", "a count from 1 to 999")),
    COOL_OFFS: (re.compile(r"[0-9]{1,6}"), ("SECONDS", "0 to 999999 seconds")),
}
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
        term = {"matchExpressions": list(self.fields)}
        return not self.fields or selectors.matches_label_selector(term, {k: v for k, v in places.items() if v})


@dataclass(frozen=True, slots=True)
class PolicySpec:
    selectors: tuple[Selector, ...] = ()
    priority: int = 0
    propagate_deps: bool = False
    affinities: tuple[Affinity, ...] = (Affinity(),)
    """Ordered: the next is asked only when no cluster of the one before fits."""
    tiers: tuple[int, ...] = (0,)
    """Of each affinity, whether it is a term of its own (0) or the tier that the one before overflows into (1, 2, ...)."""
    division: Strategy | None = None
    """How jobs are divided that may be; None: each runs on one cluster, whole."""
    weights: tuple[tuple[Affinity, int], ...] = ()
    """What a cluster gets of a job divided by static weights: the greatest of those that select it."""
    tolerations: tuple[Toleration, ...] = ()
    suspended: bool = False
    application_toleration_s: float | None = None
    """None: a failed job stays failed."""
    application_purge: PurgeMode = PurgeMode.GRACEFULLY
    cluster_purge: PurgeMode = PurgeMode.GRACEFULLY
    overwrite: bool = False
    fit: str = ""
    """How gangs are fitted wherever they go; empty: as each cluster says."""
    score_weights: tuple[tuple[str, float], ...] = ()
    """How clusters that fit are ranked; None: by the default weights."""
    max_attempts: int | None = None
    """How many failures end a job; None: as many as the fleet says."""
    failure_budgets: Mapping[Cause, int] = field(default_factory=dict)
    """How many failures of a cause end a job; of the others as many as the fleet says."""
    cool_offs: Mapping[Cause, int] = field(default_factory=dict)
    """How many seconds a cluster is excluded after a failure of a cause; after the others as long as the fleet says."""
    data_anywhere: bool = False
    """Jobs may run where the data of their volume claims is not."""
    unreachable: Unreachable = Unreachable.REPLACE
    """Whether jobs are started elsewhere while a copy of them may run in a cluster that does not answer."""
    state_rules: tuple[StateRule, ...] = ()
    """Which state of an attempt the later ones get."""
    faults: tuple[FieldFault, ...] = field(default=())


def parse_propagation_policy(manifest: Mapping[str, Any], known_kinds: Sequence[tuple[str, str]]) -> PolicySpec:
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
    division = parsing.parse_division(placement, faults)
    affinities = _affinities(placement, faults)
    tolerance = faults.whole(
        conditions.get("tolerationSeconds"),
        "spec.failover.application.decisionConditions.tolerationSeconds",
        default=300,
    )
    return PolicySpec(
        selectors=read_selectors(spec.get("resourceSelectors"), known_kinds, faults),
        priority=faults.whole(spec.get("priority"), "spec.priority", default=0, at_least=-(2**31)),
        propagate_deps=faults.flag(spec.get("propagateDeps"), "spec.propagateDeps"),
        affinities=tuple(each for each, _ in affinities),
        tiers=tuple(tier for _, tier in affinities),
        division=division,
        weights=_weights(placement, faults),
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
        fit=_fit(manifest.get("metadata"), faults),
        score_weights=preferences.weights(_annotations(manifest.get("metadata")), faults),
        max_attempts=_max_attempts(_annotations(manifest.get("metadata")), faults),
        failure_budgets=_by_cause(_annotations(manifest.get("metadata")), FAILURE_BUDGETS, faults),
        cool_offs=_by_cause(_annotations(manifest.get("metadata")), COOL_OFFS, faults),
        data_anywhere=data_placement.is_anywhere(_annotations(manifest.get("metadata")), faults),
        unreachable=unreachable.read(_annotations(manifest.get("metadata")), faults),
        state_rules=state_preservation.read(failover, faults),
        faults=tuple(faults.found),
    )


def read_selectors(value: object, known: Sequence[tuple[str, str]], faults: Faults) -> tuple[Selector, ...]:
    path = "spec.resourceSelectors"
    if not isinstance(value, list) or not value:
        faults.add(path, "must list at least one selector: a policy that selects nothing can never act")
        return ()
    result = []
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
        result.append(Selector(*kind, str(body.get("namespace") or ""), str(body.get("name") or ""), labels))
    return tuple(result)


def namespace_faults(manifest: Mapping[str, Any]) -> list[FieldFault]:
    """Selectors of a policy in a namespace that name another one: it is for the jobs of its own alone.

    Checked where a policy comes in, and not of one that is stored: its other selectors go on.
    """
    home, spec = manifest.get("metadata", {}).get("namespace"), manifest.get("spec")
    selectors = spec.get("resourceSelectors") if isinstance(spec, dict) else None
    if not home or not isinstance(selectors, list):
        return []
    named = [(i, each.get("namespace")) for i, each in enumerate(selectors) if isinstance(each, dict)]
    detail = f"must be {home}, the policy's own namespace, or not set: a policy that selects in another can never act"
    return [
        FieldFault(f"spec.resourceSelectors[{i}].namespace", detail)
        for i, name in named
        if name not in (None, "", home)
    ]


def check_labels(value: object, path: str, faults: Faults) -> None:
    if value is None:
        return
    try:
        selectors.matches_label_selector(faults.mapping(value, path), {})
    except (selectors.SelectorError, TypeError, AttributeError, KeyError) as e:
        faults.add(path, f"is not a label selector: {e}")


def _affinities(placement: Mapping[str, Any], faults: Faults) -> tuple[tuple[Affinity, int], ...]:
    single, ordered = placement.get("clusterAffinity"), placement.get("clusterAffinities")
    if single is not None and ordered is not None:
        faults.add("spec.placement.clusterAffinities", "cannot be given together with clusterAffinity")
    if ordered is None:
        return ((read_affinity(single, "spec.placement.clusterAffinity", faults), 0),)
    if not isinstance(ordered, list) or not ordered:
        faults.add("spec.placement.clusterAffinities", "must be a list of at least one term")
        return ((Affinity(), 0),)
    return tuple(each for i, term in enumerate(ordered) for each in _tiers(term, i, faults))


def _tiers(term: object, i: int, faults: Faults) -> list[tuple[Affinity, int]]:
    """A term, then the tiers it overflows into: for jobs that are not divided, further terms."""
    path = f"spec.placement.clusterAffinities[{i}]"
    affinities = [read_affinity(term, path, faults)]
    tiers = term.get("overflowAffinities") if isinstance(term, dict) else None
    if tiers is not None and not isinstance(tiers, list):
        faults.add(f"{path}.overflowAffinities", "must be a list of terms")
    else:
        affinities += [read_affinity(t, f"{path}.overflowAffinities[{n}]", faults) for n, t in enumerate(tiers or ())]
    return [(each, tier) for tier, each in enumerate(affinities)]


def _weights(placement: Mapping[str, Any], faults: Faults) -> tuple[tuple[Affinity, int], ...]:
    path = "spec.placement.replicaScheduling.weightPreference.staticWeightList"
    weights = []
    for i, entry in enumerate(parsing.weight_list(placement)):
        body = faults.mapping(entry, f"{path}[{i}]", required=True)
        target = read_affinity(body.get("targetCluster"), f"{path}[{i}].targetCluster", faults)
        weights.append((target, faults.whole(body.get("weight"), f"{path}[{i}].weight", default=0, at_least=1)))
    return tuple(weights)


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
    tolerations = []
    for i, entry in enumerate(value):
        body = faults.mapping(entry, f"{path}[{i}]", required=True)
        faults.one_of(body.get("operator"), f"{path}[{i}].operator", ("Equal", "Exists"))
        seconds = body.get("tolerationSeconds")
        limit = faults.whole(seconds, f"{path}[{i}].tolerationSeconds", default=0)
        tolerations.append(
            Toleration(
                str(body.get("key") or ""),
                str(body.get("operator") or "Equal"),
                str(body.get("value") or ""),
                str(body.get("effect") or ""),
                None if seconds is None else float(limit),
            )
        )
    return tuple(tolerations)


def _annotations(metadata: object) -> Mapping[str, Any]:
    notes = metadata.get("annotations") if isinstance(metadata, dict) else None
    return notes if isinstance(notes, dict) else {}


def _fit(metadata: object, faults: Faults) -> str:
    fit = str(_annotations(metadata).get(fits.FIT, fits.AUTO))
    if detail := fits.fault(fit):
        faults.add(f"metadata.annotations.{fits.FIT}", detail)
    return "" if fit == fits.AUTO else fit


def _max_attempts(annotations: Mapping[str, Any], faults: Faults) -> int | None:
    value = annotations.get(MAX_ATTEMPTS)
    if value is None:
        return None
    if not (isinstance(value, str) and _ATTEMPTS.fullmatch(value)):
        faults.add(f"metadata.annotations.{MAX_ATTEMPTS}", "must be a whole number from 1 to 999")
        return None
    return int(value)


def _by_cause(annotations: Mapping[str, Any], annotation: str, faults: Faults) -> Mapping[Cause, int]:
    """``CodeError=1,Infrastructure=50``"""
    pattern, form = _AMOUNTS[annotation]
    amounts: dict[Cause, int] = {}
    for part in str(annotations.get(annotation) or "").split(","):
        name, _, amount = part.strip().partition("=")
        if name in BUDGETED and pattern.fullmatch(amount):
            amounts[BUDGETED[name]] = int(amount)
        elif part.strip():
            detail = f"{part.strip()!r} is not CAUSE={form[0]} with a cause of {', '.join(BUDGETED)} and {form[1]}"
            faults.add(f"metadata.annotations.{annotation}", detail)
    return amounts


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
    messages = []
    for part in ("application", "cluster"):
        value = (failover.get(part) or {}).get("purgeMode")
        if value in _OLD_MODES:
            messages.append(f"spec.failover.{part}.purgeMode: {value} is an old spelling of {_OLD_MODES[value]}")
    messages += parsing.warnings(spec)
    messages += state_preservation.warnings(
        failover, divided=parsing.parse_division(spec.get("placement") or {}, Faults())
    )
    for path in _WITHOUT_EFFECT:
        value = spec
        for word in path.split("."):
            value = value.get(word) if isinstance(value, dict) else None
        if value:
            messages.append(f"spec.{path} has no effect in Convoy")
    return messages


@dataclass(frozen=True, slots=True)
class Candidate:
    """A policy in question for a job; ``ref`` is whatever the caller knows it by."""

    ref: Any
    namespace: str
    name: str
    spec: PolicySpec


def match_policy(
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
