"""How urgent a job is: the value of what it names, resolved once when it is submitted, and the ceilings that bound it.

A class has a value in the quota tree (a node's own first), or is a PriorityClass of the fleet. Classes of members are never
asked: they need not agree. The database is asked only where a job names a class, or is above what everyone may have.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings

from fleet.errors import FieldFault, Forbidden, InvalidInput
from jobs.core.gang import priority_classes
from jobs.core.gang.entitlement import PRIORITY, Priority, priority_of
from jobs.kinds import registry
from jobs.models import Dependent, Job
from quotas.core.trees.attributes import MAX_PRIORITY
from quotas.core.trees.tree import Node, Submitter, Tree
from quotas.services import scopes

FILLED = ("priority",)


@dataclass(frozen=True, slots=True)
class Former:
    """A stored job before it is changed: what it named then it may go on naming, and its priority was allowed."""

    named: frozenset[str]
    highest: int
    leaf: str


def former(job: Job) -> Former:
    named = _asked(job, {})
    return Former(frozenset(named.unknown), max(job.priority, named.highest_class), job.leaf)


def fill(job: Job, tree: Tree | None, by: str, before: Former | None = None) -> None:
    """Sets the priority of a job whose manifest and leaf are set; refuses unknown classes and what is above a ceiling.

    Like the priority of a pod it is resolved once: a waiting job is not reordered when the value of its class changes.
    """
    node = quota_of(tree, job.leaf)
    of_tree = node.attributes.priority_classes if node else {}
    priority = _asked(job, of_tree)
    if priority.unknown:
        priority = _asked(job, {**_of_fleet(priority.unknown), **of_tree})
    if unknown := [name for name in priority.unknown if before is None or name not in before.named]:
        raise _refusal(job, unknown[0])
    highest = max(priority.value, priority.highest_class)
    if before is None or (highest, job.leaf) != (before.highest, before.leaf):
        require_below_ceiling(job, node, highest, by)
    job.priority = priority.value


def quota_of(tree: Tree | None, leaf: str) -> Node | None:
    """The node whose attributes bound the job: its leaf, or the root for one that belongs to none; None without a tree."""
    return tree.by_path.get(leaf) or tree.nodes[0] if tree else None


def require_below_ceiling(job: Job, node: Node | None, value: int, by: str) -> None:
    stated: Mapping[Submitter, int] = node.attributes.max_priority if node else {}
    most: int = settings.CONVOY_CYCLE.max_priority
    if value <= min([most, *stated.values()]):
        return
    path = node.path if node else ""
    role = scopes.submitter_of(by, path)
    ceilings = [stated[role]] if role in stated else []
    if role is not Submitter.FLEET_ADMIN:
        ceilings.append(most)
    if ceilings and value > min(ceilings):
        where = f"{MAX_PRIORITY} of quota {path}" if stated.get(role) == min(ceilings) else "CONVOY_MAX_PRIORITY"
        raise Forbidden(
            f"{by} may not give {job} the priority {value}: {role.value}s may have at most {min(ceilings)} there ({where})"
        )


def _asked(job: Job, classes: Mapping[str, int]) -> Priority:
    annotations = job.manifest["metadata"].get("annotations") or {}
    templates = registry.kind_of(job.api_version, job.kind).templates(job.manifest)
    return priority_of(annotations, job.manifest["spec"], templates, classes)


def _of_fleet(names: tuple[str, ...]) -> dict[str, int]:
    rows = Dependent.objects.filter(kind=Dependent.PRIORITY_CLASS, namespace="", name__in=names)
    return {row.name: priority_classes.value_of(row.manifest) for row in rows}


def _refusal(job: Job, name: str) -> InvalidInput:
    detail = (
        f"PriorityClass {name} is unknown to the fleet: a quota-admin applies it (scheduling.k8s.io/v1) or gives it a value"
        f" in the quota tree (priority-classes); without a class the job may be annotated with {PRIORITY}"
    )
    return InvalidInput(f"{job}: {detail}", (FieldFault("priorityClassName", detail),))
