"""The quota tree while windows are open, and whether every combination of them that will come is a valid tree.

Pure: which windows are open is given by a time or by what is written to the queues.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from fleet.errors import FieldFault
from quotas.core.trees import parsing, windows
from quotas.core.trees.amounts import canonical_name, format_quantity
from quotas.core.trees.tree import ROOT, Node, Tree
from quotas.core.trees.windows import WINDOWS, Opening

CHECKED = timedelta(days=400)
"""How far ahead the combinations of windows are checked when a tree is saved: more than a year of any calendar."""
_COMBINATIONS = 200
Amounts = tuple[Mapping[str, int], Mapping[str, int]]
"""A min and a max, as far as an open window sets them."""


def at(tree: Tree, now: datetime) -> Tree:
    """The tree with the windows that are open at a time."""
    return with_amounts(tree, windows.amounts(windows.open_at(tree.nodes, now))) if tree.has_windows else tree


def with_amounts(tree: Tree, amounts: Mapping[str, Amounts]) -> Tree:
    """The tree in which these nodes have these min and max where they are set."""
    if not amounts:
        return tree
    return replace(tree, nodes=tuple(_with(node, amounts.get(node.path)) for node in tree.nodes))


def keeping(tree: Tree, openings: Iterable[Opening]) -> Tree:
    """The tree while these windows are open, in which a min that they raise is not lent."""
    changed = windows.amounts(openings)
    return replace(tree, nodes=tuple(_keeping(node, changed.get(node.path)) for node in tree.nodes))


def _with(node: Node, amounts: Amounts | None) -> Node:
    if amounts is None:
        return node
    least, most = amounts
    return replace(node, min={**node.min, **least}, max={**node.max, **most})


def _keeping(node: Node, amounts: Amounts | None) -> Node:
    open_node = _with(node, amounts)
    raised = {name for name, low in open_node.min.items() if low > node.min.get(name, 0)}
    if not raised:
        return open_node
    lent = open_node.min if node.attributes.lendlimit is None else node.attributes.lendlimit
    limits = {**lent, **dict.fromkeys(raised, 0)}
    return replace(open_node, attributes=replace(node.attributes, lendlimit=limits))


def find_faults(manifest: Mapping[str, Any], tree: Tree, now: datetime) -> list[FieldFault]:
    """The rules that the tree would break while some of its windows are open, each at the attribute of such a window."""
    if not tree.has_windows:
        return []
    open_now = windows.open_at(tree.nodes, now)
    combinations = [(now, open_now)] if open_now else []
    # The end of one window may break a rule as well as the beginning of another does.
    combinations += windows.ahead(tree.nodes, now, CHECKED, ends_too=True)
    where = {path: field for field, path, _ in _walk(_root(manifest), "spec.root", "")}
    faults: dict[tuple[str, str], FieldFault] = {}
    for begin, openings in combinations[:_COMBINATIONS]:
        path = next((each.path for each in openings if each.begin == begin), openings[0].path if openings else ROOT)
        for fault in parsing.parse_tree(overlaid(manifest, openings)).faults:
            field = f"{where[path]}.attributes.{WINDOWS}"
            names = ", ".join(dict.fromkeys(each.path for each in openings))
            detail = f"{path}: from {begin:%F %T} UTC on, with windows of {names} open: {fault.detail}"
            faults.setdefault((path, fault.detail), FieldFault(field, detail))
    if len(combinations) > _COMBINATIONS:
        detail = f"are open in {len(combinations)} combinations within {CHECKED.days} days, and at most {_COMBINATIONS}"
        faults["", ""] = FieldFault("spec.root", f"windows {detail} can be checked: let more of them begin together")
    return list(faults.values())


def overlaid(manifest: Mapping[str, Any], openings: Sequence[Opening]) -> dict[str, Any]:
    """The manifest with the amounts that open windows set, and without windows."""
    amounts, copy = windows.amounts(openings), deepcopy(dict(manifest))
    for _, path, node in _walk(_root(copy), "spec.root", ""):
        if isinstance(attributes := node.get("attributes"), dict):
            attributes.pop(WINDOWS, None)
        for key, changed in zip(("min", "max"), amounts.get(path, ({}, {})), strict=True):
            kept = {name: value for name, value in (node.get(key) or {}).items() if canonical_name(name) not in changed}
            if kept or changed:
                node[key] = kept | {name: format_quantity(name, amount) for name, amount in changed.items()}
    return copy


def _root(manifest: Mapping[str, Any]) -> dict[str, Any]:
    root: dict[str, Any] = manifest["spec"]["root"]
    return root


def _walk(node: dict[str, Any], field: str, parent: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The field and the path of each node of a manifest that was read without faults."""
    path = f"{parent}/{node['name']}" if parent else ROOT
    yield field, path, node
    for number, child in enumerate(node.get("children") or ()):
        yield from _walk(child, f"{field}.children[{number}]", path)
