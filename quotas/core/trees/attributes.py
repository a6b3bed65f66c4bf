"""Parses the name of a node and its attributes, which a manifest holds as text."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

from fleet.kube import names
from quotas.core.trees import durations, flavors, time_rules, validation, windows
from quotas.core.trees.amounts import format_amount
from quotas.core.trees.flavors import FLAVOR_ORDER, FLAVORS, Flavors, Preference
from quotas.core.trees.tree import (
    Attributes,
    ExcessPolicy,
    FairShare,
    OutsideJobs,
    PreemptPolicy,
    ReclaimPolicy,
    Submitter,
)
from quotas.core.trees.validation import Fault, Limits

LENDLIMIT = "alibabacloud.com/lendlimit"
WEIGHT = "weight"
PREEMPT_POLICY = "preempt-policy"
QUEUE_POLICY = "queue-policy"
CLUSTER_AFFINITY = "cluster-affinity"
PRIORITY_CLASSES = "priority-classes"
MAX_PRIORITY = "max-priority"
OUTSIDE_JOBS = "outside-jobs"
EXCESS = "excess"
FAIR_SHARE = "fair-share"
RECLAIM = "reclaim"
BORROWING_PRIORITY = "borrowing-priority"
MIN_RUNTIME = "min-runtime"
MIN_RUNTIME_CEILING = "min-runtime-ceiling"
WHEN_CAN_BORROW = "when-can-borrow"
WHEN_CAN_PREEMPT = "when-can-preempt"
_KNOWN = (
    LENDLIMIT, WEIGHT, PREEMPT_POLICY, QUEUE_POLICY, CLUSTER_AFFINITY, PRIORITY_CLASSES, MAX_PRIORITY, OUTSIDE_JOBS, EXCESS,
    *time_rules.KNOWN, FAIR_SHARE, RECLAIM, BORROWING_PRIORITY, MIN_RUNTIME, MIN_RUNTIME_CEILING, FLAVORS, FLAVOR_ORDER,
    WHEN_CAN_BORROW, WHEN_CAN_PREEMPT, windows.WINDOWS,
)  # fmt: skip
_ROOT_ONLY = {
    OUTSIDE_JOBS: "it says what becomes of jobs that belong to no leaf",
    MIN_RUNTIME_CEILING: "it bounds what every quota below may state",
    FLAVORS: "it names the models of GPUs for the whole tree",
}
NO_PRIORITY = "Never"
"""Of `BORROWING_PRIORITY`: jobs of no priority, whatever the nodes above state."""
SHARES_TWICE = (
    "FairShare compares what queues use now, and fair-share: OverTime what they have used: "
    "state reclaim: Min, or fair-share: Now here and OverTime on the leaves"
)
_LONGEST = timedelta(days=30)
"""The highest ceiling of `MIN_RUNTIME`."""
_HEAVIEST = 65535
_WEIGHT = re.compile(r"\d{1,5}(\.\d{1,3})?", re.ASCII)
_HIGHEST = 10**9
"""What a PriorityClass of one's own may be worth; what is above is the system's."""
_HIGHEST_OF_JOBS = 2**31 - 1
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)

Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Known:
    attributes: Attributes
    faults: tuple[Fault, ...]
    others: tuple[str, ...]
    """Attributes that mean nothing here."""


def shares_twice(rules: Attributes) -> bool:
    """Whether the children of a node would be given room by one order, and lose it again by another."""
    return rules.reclaim is ReclaimPolicy.FAIR_SHARE and rules.fair_share is FairShare.OVER_TIME


def name_fault(name: object) -> str:
    """What is wrong with a quota's name, or empty. It must be a valid label value: jobs name their quota by a label."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return ""
    if name in (None, ""):
        return "is required"
    return (
        f"must be at most 63 letters, digits, '-', '_' and '.', and begin and end with a letter or digit, not {name!r}"
    )


def parse_attributes(stated: Mapping[str, Any], least: Limits, inherited: Attributes, *, root: bool = False) -> Known:
    faults: list[Fault] = []
    if not root:
        faults += [(key, f"is for the root alone: {why}") for key, why in _ROOT_ONLY.items() if key in stated]
    ceiling = _duration(MIN_RUNTIME_CEILING, stated, inherited.min_runtime_ceiling, _LONGEST, faults)
    table = flavors.parse_flavors(stated.get(FLAVORS), faults) if root else inherited.flavors
    reserved = _windows(stated.get(windows.WINDOWS), table, faults)
    excess = _choice(EXCESS, stated, inherited.excess, faults)
    if reserved and excess is ExcessPolicy.REFUSE:
        excess = ExcessPolicy.WAIT  # the clock lowers a limit, and cannot be refused to
    attributes = Attributes(
        lendlimit=_lendlimit(stated.get(LENDLIMIT), least, table, faults),
        weight=_weight(stated.get(WEIGHT), faults),
        preempt_policy=_choice(PREEMPT_POLICY, stated, PreemptPolicy.NEVER, faults),
        queue_policy=_choice(QUEUE_POLICY, stated, inherited.queue_policy, faults),
        cluster_affinity=_clusters(stated.get(CLUSTER_AFFINITY), inherited.cluster_affinity, faults),
        priority_classes=_classes(stated.get(PRIORITY_CLASSES), inherited.priority_classes, faults),
        max_priority=_ceilings(stated.get(MAX_PRIORITY), inherited.max_priority, faults),
        outside_jobs=None
        if stated.get(OUTSIDE_JOBS) is None
        else _choice(OUTSIDE_JOBS, stated, OutsideJobs.WAIT, faults),
        excess=excess,
        fair_share=_choice(FAIR_SHARE, stated, inherited.fair_share, faults),
        reclaim=_choice(RECLAIM, stated, inherited.reclaim, faults),
        borrowing_priority=_priority(stated.get(BORROWING_PRIORITY), inherited.borrowing_priority, faults),
        min_runtime=_duration(MIN_RUNTIME, stated, inherited.min_runtime, ceiling, faults),
        min_runtime_ceiling=ceiling,
        flavors=table,
        time=time_rules.parse_time_rules(stated, inherited.time, faults),
        preference=_preference(stated, table, inherited.preference, faults),
        windows=reserved,
    )
    return Known(attributes, tuple(faults), tuple(sorted(stated.keys() - set(_KNOWN))))


def _windows(value: object, table: Flavors, faults: list[Fault]) -> tuple[windows.Window, ...]:
    body = None if value is None else _parsed(value)
    if value is not None and body is None:
        body = value  # no JSON: refused as what it is
    return windows.parse_windows(body, lambda name: flavors.name_fault(name, table), faults)


def _preference(stated: Mapping[str, Any], table: Flavors, inherited: Preference, faults: list[Fault]) -> Preference:
    for key in (WHEN_CAN_BORROW, WHEN_CAN_PREEMPT):
        if stated.get(key) is not None and not table:
            faults.append((key, f"is about flavors, and the root has no attribute {FLAVORS}"))
    return Preference(
        flavors.parse_order(stated.get(FLAVOR_ORDER), table, inherited.order, faults),
        _choice(WHEN_CAN_BORROW, stated, inherited.when_can_borrow, faults),
        _choice(WHEN_CAN_PREEMPT, stated, inherited.when_can_preempt, faults),
    )


def _lendlimit(value: object, least: Limits, table: Flavors, faults: list[Fault]) -> Limits | None:
    if value is None:
        return None
    body = _parsed(value)
    if not isinstance(body, dict):
        faults.append((LENDLIMIT, 'must be JSON such as \'{"cpu": 2, "memory": "4Gi"}\''))
        return None
    lent, wrong = validation.parse_limits(body, lambda name: flavors.name_fault(name, table))
    faults += [(LENDLIMIT, f"{resource} {detail}") for resource, detail in wrong]
    for resource, amount in lent.items():
        if amount > least.get(resource, 0):
            own = format_amount(resource, least.get(resource, 0))
            faults.append((LENDLIMIT, f"lends {format_amount(resource, amount)}, more than its min {own}"))
    return lent


def _weight(value: object, faults: list[Fault]) -> float:
    if value is None:
        return 1
    text = str(value)
    if _WEIGHT.fullmatch(text) and float(text) <= _HEAVIEST:
        return float(text)
    faults.append((WEIGHT, f"must be a number from 0 to {_HEAVIEST} with up to three decimals, not {value!r}"))
    return 1


def _clusters(value: object, inherited: tuple[str, ...], faults: list[Fault]) -> tuple[str, ...]:
    if value is None:
        return inherited
    listed = [part.strip() for part in value.split(",")] if isinstance(value, str) else [value]
    wrong = [repr(name) for name in listed if names.subdomain_fault(name)]
    if wrong:
        faults.append((CLUSTER_AFFINITY, f"must be names of clusters, such as north,south: {wrong[0]} is none"))
        return inherited
    stated = tuple(dict.fromkeys(str(name) for name in listed))
    common = tuple(name for name in stated if not inherited or name in inherited)
    if not common:
        stated_names = f"names {', '.join(stated)}, and the quotas above allow only {', '.join(inherited)}"
        faults.append((CLUSTER_AFFINITY, f"{stated_names}: no cluster is left"))
    return common


def _parsed(value: object) -> object:
    """The value of JSON text, or what was stated as a value; None for text that is no JSON."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None


def _classes(value: object, inherited: Mapping[str, int], faults: list[Fault]) -> Mapping[str, int]:
    """Inherited priority classes, overridden by the node's own."""
    if value is None:
        return inherited
    body = _parsed(value)
    if not isinstance(body, dict):
        faults.append((PRIORITY_CLASSES, 'must be JSON such as \'{"research": 1000, "night": -10}\''))
        return inherited
    for name, worth in body.items():
        if detail := names.subdomain_fault(name):
            faults.append((PRIORITY_CLASSES, f"{name!r} is no name of a PriorityClass: it {detail}"))
        elif type(worth) is not int or abs(worth) > _HIGHEST:
            faults.append((PRIORITY_CLASSES, f"{name} must be a whole number up to {_HIGHEST}, not {worth!r}"))
    return {**inherited, **body}


def _ceilings(value: object, inherited: Mapping[Submitter, int], faults: list[Fault]) -> Mapping[Submitter, int]:
    """The ceilings from above, lowered by the node's own: an edit below a node cannot lift its ceiling."""
    if value is None:
        return inherited
    body = _parsed(value)
    own = dict.fromkeys(Submitter, body) if type(body) is int else body
    if not isinstance(own, dict):
        faults.append((MAX_PRIORITY, 'must be a whole number or JSON such as \'{"editor": 100, "team-lead": 1000}\''))
        return inherited
    lowered = dict(inherited)
    for role, most in own.items():
        if role not in list(Submitter):
            faults.append((MAX_PRIORITY, f"{role!r} is no role; known are {', '.join(Submitter)}"))
        elif type(most) is not int or abs(most) > _HIGHEST_OF_JOBS:
            faults.append((MAX_PRIORITY, f"{role} must be a whole number up to {_HIGHEST_OF_JOBS}, not {most!r}"))
        else:
            lowered[Submitter(role)] = min(most, inherited.get(Submitter(role), most))
    return lowered


def _priority(value: object, inherited: int | None, faults: list[Fault]) -> int | None:
    if value is None:
        return inherited
    if value == NO_PRIORITY:
        return None
    number = _parsed(value)
    if type(number) is not int or abs(number) > _HIGHEST_OF_JOBS:
        allowed = f"a whole number up to {_HIGHEST_OF_JOBS} or {NO_PRIORITY}"
        faults.append((BORROWING_PRIORITY, f"must be {allowed}, not {value!r}"))
        return inherited
    return number


def _duration(
    key: str, stated: Mapping[str, Any], default: timedelta, most: timedelta, faults: list[Fault]
) -> timedelta:
    if (value := stated.get(key)) is None:
        return default
    duration = durations.parse_duration(value)
    if duration is None:
        faults.append((key, f"must be {durations.FORMAT}, not {value!r}"))
    elif duration > most:
        allowed = f"{durations.format_duration(most)}{f', the {MIN_RUNTIME_CEILING}' if key == MIN_RUNTIME else ''}"
        faults.append((key, f"must be at most {allowed}, not {value}"))
    else:
        return duration
    return default


def _choice(key: str, stated: Mapping[str, Any], default: Choice, faults: list[Fault]) -> Choice:
    value = stated.get(key)
    choices = list(type(default))
    if value is None:
        return default
    for choice in choices:
        if choice.value == value:
            return choice
    faults.append((key, f"must be one of {', '.join(choices)}, not {value!r}"))
    return default
