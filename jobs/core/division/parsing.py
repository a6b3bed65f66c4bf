"""The part of a PropagationPolicy that says whether, and how, jobs are divided over clusters: read, checked, warned of.

Which kinds may be divided is known by the kinds; here it is only named for the warnings.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jobs.core.division.replicas import Preference, Strategy
from jobs.core.division.spread import CLUSTER, FIELDS, UNLIMITED, Spread
from jobs.core.manifest_fields import Faults

_PATH = "spec.placement.replicaScheduling"
_SPREADS = "spec.placement.spreadConstraints"
_DIVISIBLE = (("batch/v1", "Job"),)


def parse_division(placement: Mapping[str, Any], faults: Faults) -> Strategy | None:
    """None: jobs run whole."""
    body = faults.mapping(placement.get("replicaScheduling"), _PATH)
    faults.one_of(body.get("replicaSchedulingType"), f"{_PATH}.replicaSchedulingType", ("Divided", "Duplicated"))
    faults.one_of(
        body.get("replicaDivisionPreference"), f"{_PATH}.replicaDivisionPreference", ("Aggregated", "Weighted")
    )
    faults.one_of(body.get("customSchedulingType"), f"{_PATH}.customSchedulingType", ("Gang",))
    preference = _preference(body, faults)
    divided = body.get("replicaSchedulingType") == "Divided" and body.get("customSchedulingType") != "Gang"
    spreads = _spreads(placement.get("spreadConstraints"), divided, faults)
    return Strategy(preference, spreads) if divided else None


def _preference(body: Mapping[str, Any], faults: Faults) -> Preference:
    weights = faults.mapping(body.get("weightPreference"), f"{_PATH}.weightPreference")
    dynamic, static = weights.get("dynamicWeight"), weights.get("staticWeightList")
    faults.one_of(dynamic, f"{_PATH}.weightPreference.dynamicWeight", ("AvailableReplicas",))
    if static is not None and not isinstance(static, list):
        faults.add(f"{_PATH}.weightPreference.staticWeightList", "must be a list of targetCluster and weight")
    if dynamic and static:
        faults.add(f"{_PATH}.weightPreference.staticWeightList", "cannot be given together with dynamicWeight")
    if body.get("replicaDivisionPreference") != "Weighted":
        return Preference.AGGREGATED
    return Preference.BY_ROOM if dynamic else Preference.BY_WEIGHT


def weight_list(placement: Mapping[str, Any]) -> Sequence[object]:
    """The entries of staticWeightList; none when it is no list."""
    value: object = placement
    for key in ("replicaScheduling", "weightPreference", "staticWeightList"):
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, list) else ()


def _spreads(value: object, divided: bool, faults: Faults) -> tuple[Spread, ...]:
    if value is not None and not isinstance(value, list):
        faults.add(_SPREADS, "must be a list")
        return ()
    spreads: list[Spread] = []
    for i, entry in enumerate(value or ()):
        spreads += _spread(entry, f"{_SPREADS}[{i}]", divided, faults)
    named = [each.by for each in spreads]
    for i, by in enumerate(named):
        if by in named[:i]:
            faults.add(f"{_SPREADS}[{i}].spreadByField", f"must not be {by} twice")
    groups = sorted({by for by in named if by != CLUSTER})
    if divided and len(groups) > 1:
        faults.add(_SPREADS, f"must not spread by {' and '.join(groups)} at once: give one of them, beside cluster")
    return tuple(spreads)


def _spread(entry: object, path: str, divided: bool, faults: Faults) -> list[Spread]:
    body = faults.mapping(entry, path, required=True)
    by = body.get("spreadByField")
    faults.one_of(by, f"{path}.spreadByField", FIELDS)
    if by and body.get("spreadByLabel"):
        faults.add(f"{path}.spreadByLabel", "cannot be given together with spreadByField")
    elif divided and body.get("spreadByLabel"):
        faults.add(f"{path}.spreadByLabel", f"is not known to division: use spreadByField with {', '.join(FIELDS)}")
    least = faults.whole(body.get("minGroups"), f"{path}.minGroups", default=1)
    most = faults.whole(body.get("maxGroups"), f"{path}.maxGroups", default=max(least, 1), at_least=1)
    if least > 1 and not divided:
        faults.add(f"{path}.minGroups", f"must be 1, not {least}: a job runs on one cluster, whole")
    elif most < least:
        faults.add(f"{path}.maxGroups", f"must not be less than minGroups, {least}")
    limit = most if body.get("maxGroups") is not None else UNLIMITED
    return [Spread(by if isinstance(by, str) else CLUSTER, max(least, 1), limit)]


def warnings(spec: Mapping[str, Any]) -> list[str]:
    """What a person should know of an accepted policy: where its words about division do nothing, and why."""
    placement = spec.get("placement") or {}
    body = placement.get("replicaScheduling") or {}
    kinds = {(s.get("apiVersion"), s.get("kind")) for s in spec.get("resourceSelectors") or ()}
    gang = body.get("customSchedulingType") == "Gang"
    weighted = body.get("replicaDivisionPreference") == "Weighted"
    weights = body.get("weightPreference") or {}
    if body.get("replicaSchedulingType") == "Duplicated":
        return [f"{_PATH}.replicaSchedulingType: Duplicated makes no second copy: a job runs once"]
    if weighted and (gang or not kinds & set(_DIVISIBLE)):
        why = "a gang" if gang else "a job of such a kind"
        return [f"{_PATH}.replicaDivisionPreference: Weighted divides nothing: {why} runs on one cluster, whole"]
    if weights and not weighted:
        return [f"{_PATH}.weightPreference has no effect without replicaDivisionPreference: Weighted"]
    if weighted and not weights.get("dynamicWeight") and placement.get("spreadConstraints"):
        return [f"{_SPREADS} has no effect beside static weights, which say what each cluster gets"]
    return []
