"""Small changes of a tree's manifest: a few keys of one node, a node more or less, a node elsewhere or under another name.

Works on copies of the manifest and keeps everything it was not asked to touch. Whether the outcome is a valid tree is for
`quotas.core.trees.parsing` to say, when it is saved or previewed.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from fleet.errors import InvalidInput, NotFound, invalid
from quotas.core.trees.tree import ROOT

Manifest = dict[str, Any]
Change = Mapping[str, Any]
_MERGED = ("min", "max", "attributes")
_REPLACED = ("namespaces",)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_METADATA = ("name", "namespace", "labels", "annotations")
_POINTER = re.compile(r"spec\.root((?:\.children\[\d+\])*)\.?(.*)", re.DOTALL)


def changed(manifest: Mapping[str, Any], changes: Sequence[Change]) -> Manifest:
    """The manifest after all changes, one after the other. Raises `InvalidInput` that says which of them is at fault."""
    after = deepcopy(dict(manifest))
    for i, change in enumerate(changes):
        operation = OPERATIONS.get(str(change.get("op")))
        if operation is None:
            raise invalid(f"changes[{i}].op", f"must be one of {', '.join(OPERATIONS)}, not {change.get('op')!r}")
        try:
            operation(after, change)
        except InvalidInput as e:
            raise InvalidInput(f"changes[{i}].{e.message}", e.faults) from e
    return after


def cleaned(manifest: Mapping[str, Any]) -> Manifest:
    """The manifest without what servers fill in."""
    metadata = _object(manifest.get("metadata"))
    metadata_kept = {key: metadata[key] for key in _METADATA if metadata.get(key)}
    return {**{key: value for key, value in manifest.items() if key != "status"}, "metadata": metadata_kept}


def beside_nodes(manifest: Mapping[str, Any]) -> Manifest:
    """All of a cleaned manifest that is not a node: its labels, annotations and whatever else is kept, but kubectl's notes."""
    spec, metadata = _object(manifest.get("spec")), _object(manifest.get("metadata"))
    annotations = {key: value for key, value in _object(metadata.get("annotations")).items() if key != _LAST_APPLIED}
    kept = {key: value for key, value in metadata.items() if key != "annotations"}
    rest = {key: value for key, value in spec.items() if key != "root"}
    return {**manifest, "metadata": {**kept, "annotations": annotations}, "spec": rest}


def walk(manifest: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(path, node as written), parents first; whatever cannot be a node is passed over."""
    spec = manifest.get("spec")
    root = spec.get("root") if isinstance(spec, dict) else None
    yield from _below(root, "") if isinstance(root, dict) else ()


def place_of(manifest: Mapping[str, Any], field: str) -> tuple[str, str]:
    """The node a fault is about, as its path, and the field within it: ``spec.root.children[1].min.cpu``."""
    match = _POINTER.fullmatch(field)
    spec: Any = manifest.get("spec")
    nodes: Any = spec.get("root") if isinstance(spec, dict) else None
    if match is None or not isinstance(nodes, dict):
        return "", field
    path = ROOT
    for index in re.findall(r"\d+", match[1]):
        nodes = nodes["children"][int(index)]
        path = f"{path}/{nodes.get('name') if isinstance(nodes, dict) else ''}"
    return path, match[2]


def _below(node: dict[str, Any], parent: str) -> Iterator[tuple[str, dict[str, Any]]]:
    path = f"{parent}/{node.get('name')}" if parent else ROOT
    yield path, node
    children = node.get("children")
    for child in children if isinstance(children, list) else ():
        if isinstance(child, dict):
            yield from _below(child, path)


def _node(manifest: Manifest, path: object) -> dict[str, Any]:
    entry = next((node for each, node in walk(manifest) if each == path), None)
    if entry is None:
        raise NotFound(f"There is no node {path} in the quota tree.")
    return entry


def _parent_of(manifest: Manifest, path: object) -> dict[str, Any]:
    if not isinstance(path, str) or "/" not in path:
        raise invalid("path", f"{path!r} must be a node below the root")
    _node(manifest, path)
    return _node(manifest, path.rpartition("/")[0])


def _edit(manifest: Manifest, change: Change) -> None:
    """Only what is named: a key with null goes, a key that is not named stays."""
    node = _node(manifest, change.get("path"))
    body = change.get("set")
    if not isinstance(body, dict):
        raise invalid("set", f"must be an object with some of {', '.join((*_MERGED, *_REPLACED))}")
    for key, value in body.items():
        if key in _MERGED and isinstance(value, dict):
            merged = {**_object(node.get(key)), **value}
            node[key] = {name: each for name, each in merged.items() if each is not None}
        elif key in _REPLACED:
            node[key] = value
        else:
            raise invalid(f"set.{key}", f"must be an object under one of {', '.join((*_MERGED, *_REPLACED))}")
        if not node[key]:
            del node[key]


def _add(manifest: Manifest, change: Change) -> None:
    parent, node = _node(manifest, change.get("parent")), change.get("node")
    if not isinstance(node, dict):
        raise invalid("node", "must be a quota as in the manifest, with a name")
    parent["children"] = [*_list(parent.get("children")), deepcopy(node)]


def _remove(manifest: Manifest, change: Change) -> None:
    _taken(manifest, change.get("path"))


def _move(manifest: Manifest, change: Change) -> None:
    path, goal = change.get("path"), change.get("parent")
    if goal == path or str(goal).startswith(f"{path}/"):
        raise invalid("parent", f"{goal} is {path} itself or below it")
    parent, node = _node(manifest, goal), _taken(manifest, path)
    at = change.get("index")
    children = _list(parent.get("children"))
    children.insert(at if isinstance(at, int) else len(children), node)
    parent["children"] = children


def _rename(manifest: Manifest, change: Change) -> None:
    _parent_of(manifest, change.get("path"))
    _node(manifest, change.get("path"))["name"] = change.get("name")


def _taken(manifest: Manifest, path: object) -> dict[str, Any]:
    parent, node = _parent_of(manifest, path), _node(manifest, path)
    parent["children"] = [each for each in parent["children"] if each is not node]
    if not parent["children"]:
        del parent["children"]
    return node


def _object(value: object) -> dict[str, Any]:
    """What was added a moment ago may be anything until it is read."""
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list) else []


OPERATIONS: dict[str, Callable[[Manifest, Change], None]] = {
    "edit": _edit,
    "add": _add,
    "remove": _remove,
    "move": _move,
    "rename": _rename,
}
