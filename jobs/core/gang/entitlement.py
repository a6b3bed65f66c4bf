"""Which leaf of the quota tree a job belongs to, what its priority is, and whether it may be preempted.

A label beats the namespace, but only where that is safe: a leaf that lists namespaces is theirs, so a job of another
namespace cannot use it; a leaf that lists none is open to every job that names it. A job that names a leaf it may not have
waits: going on without quota would be a way around it. Knows nothing of what is in use.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jobs.core.gang import priority_classes
from quotas.core.trees.tree import NAME_LABELS, NoQuota, Tree

PREEMPTIBLE_LABELS = ("quota.scheduling.alibabacloud.com/preemptible", "quota.scheduling.koordinator.sh/preemptible")
PRIORITY = "convoy.dev/priority"
"""Annotation of a job: a whole number, the higher the sooner."""
_HIGHEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Belonging:
    leaf: str = ""
    """Empty: no leaf is its own."""
    fault: str = ""
    """Why the leaf it names is not; empty when it names none."""


def find_leaf(tree: Tree | None, namespace: str, labels: Mapping[str, str], *, pinned: str = "") -> Belonging:
    """``pinned``: the leaf that a user moved it to, which counts while the leaf exists."""
    if tree is None:
        return Belonging()
    if pinned in tree.by_path and pinned not in tree.children:
        return Belonging(pinned)
    named = [labels[label] for label in NAME_LABELS if label in labels][:1]
    leaf = tree.leaf_of(namespace, labels)
    if isinstance(leaf, NoQuota):
        return Belonging(fault=leaf.message if named else "")
    if named and leaf.namespaces and namespace not in leaf.namespaces:
        namespaces = ", ".join(leaf.namespaces)
        return Belonging(
            fault=f"its label names {leaf.path}, which is for namespace {namespaces} and not for {namespace}"
        )
    return Belonging(leaf.path)


def no_leaf(namespace: str, fault: str, *, runs_if_stated: bool = True) -> str:
    """Why a job waits that belongs to no leaf, and what changes that."""
    if fault:
        return fault
    message = f"namespace {namespace} is in no leaf of the quota tree, and the job names none by label"
    choice = ", or state on the root the attribute outside-jobs: Run" if runs_if_stated else ""
    return f"{message}: list the namespace at a leaf{choice}"


def is_preemptible(labels: Mapping[str, str]) -> bool:
    """True unless a label says ``false``."""
    values = [labels[label] for label in PREEMPTIBLE_LABELS if label in labels][:1]
    return values != ["false"]


@dataclass(frozen=True, slots=True)
class Priority:
    value: int = 0
    unknown: tuple[str, ...] = ()
    """The priority classes it names that have no value."""
    highest_class: int = 0
    """What the classes it names are worth at the most, also where another value counts: members act on them."""


def priority_of(
    annotations: Mapping[str, Any],
    spec: Mapping[str, Any],
    templates: Iterable[tuple[str, Mapping[str, Any]]],
    classes: Mapping[str, int],
) -> Priority:
    """The job's own annotation, else the class of its run policy, else the highest priority of its pods.

    ``classes``: values by name, of the fleet's PriorityClasses and of the quota tree.
    """
    worth = {**priority_classes.SYSTEM, **classes}
    of_run, pods = _class_of_run(spec), [template.get("spec") or {} for _, template in templates]
    named = {of_run} | {str(pod.get("priorityClassName") or "") for pod in pods} - {""}
    stated, value = annotations.get(PRIORITY), 0
    if stated is not None and not priority_fault(stated):
        value = int(stated)
    elif of_run:
        value = worth.get(of_run, 0)
    else:
        of_pods = [pod.get("priority", worth.get(str(pod.get("priorityClassName")), 0)) for pod in pods]
        value = max((each for each in of_pods if isinstance(each, int) and abs(each) <= _HIGHEST), default=0)
    highest = max((worth[name] for name in named if name in worth), default=0)
    return Priority(value, tuple(sorted(named - worth.keys() - {""})), highest)


def _class_of_run(spec: Mapping[str, Any]) -> str:
    """Where the kinds of Kubeflow name a class for the whole gang, and where those of Volcano do."""
    run = spec.get("runPolicy")
    scheduling = run.get("schedulingPolicy") if isinstance(run, dict) else None
    named = scheduling.get("priorityClass") if isinstance(scheduling, dict) else spec.get("priorityClassName")
    return named if isinstance(named, str) else ""


def priority_fault(value: object) -> str:
    """What is wrong with the annotation, as the end of a sentence; empty when nothing is."""
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,10}", value, re.ASCII) and abs(int(value)) <= _HIGHEST:
        return ""
    return f"must be a whole number from -{_HIGHEST} to {_HIGHEST}, in quotes, not {value!r}"
