"""Who may change which part of the quota tree: all of it by role, or what is below a node by a `QuotaGrant`.

Asked by the services themselves, with the name a door gives, so that every door gives the same answer with the same reason.
A name that no user has is the product itself.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from fleet.core.security import token_scopes
from fleet.errors import Forbidden
from fleet.models import Grant
from fleet.services.authorization import access
from quotas.core.trees.tree import Node, Submitter, Tree
from quotas.models import Queue, QuotaGrant, QuotaTree
from quotas.services import edits, past_trees

_WHOLE = (Grant.Role.FLEET_ADMIN, Grant.Role.QUOTA_ADMIN)
_KINDS = (QuotaTree.kind, Queue.kind)


@dataclass(frozen=True, slots=True)
class Scope:
    """``paths`` are the nodes one leads; None is the whole tree."""

    paths: frozenset[str] | None

    def may_edit(self, path: str) -> bool:
        return self.paths is None or any(path.startswith(f"{each}/") for each in self.paths)

    def may_run(self, path: str) -> bool:
        """Its queue: the node one leads is one's own to hold."""
        return self.may_edit(path) or (self.paths is not None and path in self.paths)


EVERYTHING = Scope(None)


def scope_of(user: Any) -> Scope:
    if not _is_for_quotas(access.scope_of(user)):
        return Scope(frozenset())
    held = {each.role for each in access.roles(user) if not each.namespace}
    if held & set(_WHOLE):
        return EVERYTHING
    return Scope(frozenset(QuotaGrant.objects.filter(user_id=user.pk).values_list("path", flat=True)))


def _is_for_quotas(token: token_scopes.Scope) -> bool:
    """The verb was asked for where the request came in; a token for some namespaces changes nothing that they share."""
    return token.namespaces is None and any(token.kinds is None or kind in token.kinds for kind in _KINDS)


def of_name(name: str) -> Scope:
    user = access.user_named(name)
    return EVERYTHING if user is None else scope_of(user)


def leads_of(user: Any, verb: str) -> bool:
    """Whether the user may change anything of the tree by a grant: what the doors ask first."""
    return bool(getattr(user, "is_active", False)) and QuotaGrant.objects.filter(user_id=user.pk).exists()


def submitter_of(name: str, path: str) -> Submitter:
    """The role in which the user submits to the queue of that node; the product itself is bounded as little as an admin."""
    user = access.user_named(name)
    if user is None or access.is_fleet_admin(user):
        return Submitter.FLEET_ADMIN
    return Submitter.TEAM_LEAD if scope_of(user).may_run(path) else Submitter.EDITOR


def visible_paths(user: Any, tree: Tree | None) -> frozenset[str] | None:
    """The leaves that the user leads or of which they read a namespace, and the nodes above; None: the user reads all.

    The tree is everybody's who reads the fleet. This is for reports that say what single teams do.
    """
    namespaces = access.visible_namespaces(user)
    if namespaces is None:
        return None
    led = scope_of(user).paths or frozenset()
    return _visible(((leaf.path, leaf.namespaces) for leaf in tree.leaves) if tree else (), namespaces, led)


def visible_paths_between(
    user: Any, begin: datetime, end: datetime, now: datetime, step: timedelta = timedelta(seconds=1)
) -> frozenset[str] | None:
    """The same of the trees of a time: a leaf that was another team's in one of them is not visible in all of it.

    Who leads a node of today leads what it was since it was added, and of an earlier node of its name the leaves that list
    no other namespaces than those led today. Raises `InvalidInput` where there are too many trees, or they are not kept.
    """
    namespaces = access.visible_namespaces(user)
    if namespaces is None:
        return None
    tops = scope_of(user).paths or frozenset()
    readable = frozenset(namespaces)
    added = dict(Queue.objects.filter(path__in=tops).values_list("path", "created_at"))
    today = past_trees.eras(now, now, now)[-1]
    led_names = _names_below(tops, today) if tops else frozenset()
    seen, foreign, inner = set[str](), set[str](), set[str]()
    for era, leaves in past_trees.leaves(past_trees.eras(begin, end, now, step)):
        led = {path for path in added if added[path] <= era.since or era.generation == today.generation}
        own = {path for path, listed in leaves.items() if not listed or not readable.isdisjoint(listed)}
        own |= {path for path in leaves if _is_within(path, led)}
        own |= {path for path, listed in leaves.items() if _is_within(path, tops) and led_names.issuperset(listed)}
        others = leaves.keys() - own
        foreign |= others
        inner |= _with_above(others) - _with_above(own)
        seen |= {path for path in own if leaves[path] or _is_within(path, led)}
    return _with_above(seen - foreign - inner) - foreign - (inner & seen)


def _names_below(tops: Collection[str], era: past_trees.Era) -> frozenset[str]:
    """The namespaces that the tree of an era lists below these nodes."""
    [(_, leaves)] = past_trees.leaves([era])
    return frozenset(name for path, listed in leaves.items() if _is_within(path, tops) for name in listed)


def _visible(
    leaves: Iterable[tuple[str, Iterable[str]]], namespaces: Collection[str], led: Collection[str]
) -> frozenset[str]:
    return _with_above(
        path for path, of_leaf in leaves if not set(namespaces).isdisjoint(of_leaf) or _is_within(path, led)
    )


def _with_above(paths: Iterable[str]) -> frozenset[str]:
    return frozenset(above for path in paths for above in accumulate(path.split("/"), "{}/{}".format))


def _is_within(path: str, tops: Iterable[str]) -> bool:
    return any(path == top or path.startswith(f"{top}/") for top in tops)


def require_edits(by: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> None:
    """A lead changes nodes strictly below their own and nothing else of the tree; both manifests are cleaned ones.

    Which namespaces the tree binds is the quota-admin's: a lead lists below their nodes those that were listed there, and all
    of them. One more would capture another team's jobs, and one less would let the own jobs run outside their quota.
    """
    scope = of_name(by)
    if scope.paths is None:
        return
    if before is None or after is None:
        raise Forbidden(_refusal(by, "change", "the whole quota tree", scope))
    above = [path for path in touched_paths(before, after) if not scope.may_edit(path)]
    above += [path for path in _reordered(before, after) if not scope.may_run(path)]
    if above or edits.beside_nodes(before) != edits.beside_nodes(after):
        raise Forbidden(_refusal(by, "change", ", ".join(above[:3]) or "the whole quota tree", scope))
    _require_own_names(by, before, after, scope)
    old, new = _namespaces(before, scope), _namespaces(after, scope)
    if differ := sorted(old ^ new):
        verb = "list" if differ[0] in new else "take out"
        raise Forbidden(
            f"{by} may not {verb} namespace {differ[0]}: which namespaces the tree binds is changed with the role "
            f"{Grant.Role.QUOTA_ADMIN.value}; those listed below {_listed(scope.paths)} may change places there"
        )


def _require_own_names(by: str, before: Mapping[str, Any], after: Mapping[str, Any], scope: Scope) -> None:
    """Jobs name their leaf by a label: a second leaf of that name would leave those of another team without any."""
    others = {path.rpartition("/")[2]: path for path in _leaves(after) if not scope.may_edit(path)}
    known = {path.rpartition("/")[2] for path in _leaves(before) if scope.may_edit(path)}
    for path in _leaves(after):
        name = path.rpartition("/")[2]
        if scope.may_edit(path) and name in others and name not in known:
            raise Forbidden(f"{by} may not call a leaf {name}: {others[name]} has that name, by which jobs find it")


def _leaves(manifest: Mapping[str, Any]) -> list[str]:
    return [path for path, node in edits.walk(manifest) if not node.get("children")]


def _reordered(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The paths of nodes whose children are others, or stand in another order."""
    old, new = _children(before), _children(after)
    return sorted(path for path in {*old, *new} if old.get(path, []) != new.get(path, []))


def _children(manifest: Mapping[str, Any]) -> dict[str, list[str]]:
    children: dict[str, list[str]] = {}
    for path, _ in edits.walk(manifest):
        parent, _, name = path.rpartition("/")
        children.setdefault(parent, []).append(name)
    return children


def _namespaces(manifest: Mapping[str, Any], scope: Scope) -> set[str]:
    """What is listed at nodes that the lead runs; an invalid list is refused where the tree is read."""
    listed = [node.get("namespaces") for path, node in edits.walk(manifest) if scope.may_run(path)]
    return {str(name) for names in listed if isinstance(names, list) for name in names}


def require_queue(by: str, path: str) -> None:
    scope = of_name(by)
    if not scope.may_run(path):
        raise Forbidden(_refusal(by, "change the queue of", path, scope))


def require_into(by: str, leaf: Node, namespace: str) -> None:
    """To move a job into a queue: free to all where its namespace belongs, or where the leaf lists none."""
    if leaf.namespaces and namespace not in leaf.namespaces:
        require_queue(by, leaf.path)


def touched_paths(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The paths of nodes that differ, their children left aside."""
    old, new = _flat(before), _flat(after)
    return sorted(path for path in {*old, *new} if old.get(path) != new.get(path))


def _flat(manifest: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Lists, because an invalid tree may have two nodes of one path."""
    levels: dict[str, list[dict[str, Any]]] = {}
    for path, node in edits.walk(manifest):
        own = {key: value for key, value in node.items() if key not in ("children", "name")}
        levels.setdefault(path, []).append(own)
    return levels


def _refusal(by: str, verb: str, what: str, scope: Scope) -> str:
    below = _listed(scope.paths or ())
    limit = f"{by} leads what is below {below} only" if below else f"it takes the role {Grant.Role.QUOTA_ADMIN.value}"
    return f"{by} may not {verb} {what}: {limit}"


def _listed(paths: Iterable[str]) -> str:
    return ", ".join(sorted(paths))
