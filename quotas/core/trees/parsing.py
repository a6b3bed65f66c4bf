"""Parses an ElasticQuotaTree manifest into a `Tree`, or returns all its faults at once.

Each fault names the field by its path in the manifest, the quota by its path in the tree, and both numbers of a broken rule.
An unknown field is a fault and not a warning: ``maxx`` would lift a limit.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fleet.errors import FieldFault
from fleet.kube import names
from quotas.core.trees import attributes, flavors, validation
from quotas.core.trees.attributes import Known
from quotas.core.trees.tree import ROOT, Attributes, Node, Tree
from quotas.core.trees.validation import Limits

API_VERSION = "scheduling.sigs.k8s.io/v1beta1"
KIND = "ElasticQuotaTree"
NAMESPACE = "kube-system"
DEEPEST = 10
_FIELDS = ("name", "min", "max", "namespaces", "children", "attributes")


@dataclass(frozen=True, slots=True)
class Reading:
    """``tree`` is None exactly when there are faults."""

    tree: Tree | None
    faults: tuple[FieldFault, ...]
    warnings: tuple[str, ...]


def parse_tree(manifest: Mapping[str, Any]) -> Reading:
    reader = _Reader()
    reader.head(manifest)
    spec = reader.mapping(manifest.get("spec"), "spec")
    if "root" in spec:
        reader.flavors = _stated_flavors(spec["root"])
        reader.node(spec["root"], "spec.root", None, 1)
        if not reader.faults:
            reader.promised_flavors()
    else:
        reader.add("spec.root", "is required: the quota everything else is part of")
    tree = None if reader.faults else Tree(tuple(reader.nodes))
    return Reading(tree, tuple(reader.faults), tuple(reader.warnings))


@dataclass(frozen=True, slots=True)
class _Parent:
    path: str
    ceiling: Limits
    attributes: Attributes


@dataclass(slots=True)
class _Reader:
    faults: list[FieldFault] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    bound: dict[str, str] = field(default_factory=dict)
    flavors: tuple[str, ...] = ()
    """Names of the table, whatever else is wrong with it."""
    where: dict[str, tuple[str, Limits]] = field(default_factory=dict)
    """By path, where a node stands in the manifest and the least max from there up."""

    def add(self, where: str, detail: str) -> None:
        self.faults.append(FieldFault(where, detail))

    def mapping(self, value: object, where: str) -> Mapping[str, Any]:
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return value
        self.add(where, "is required" if value is None else "must be an object")
        return {}

    def listing(self, value: object, where: str) -> list[Any]:
        if value is None or isinstance(value, list):
            return value or []
        self.add(where, "must be a list")
        return []

    def head(self, manifest: Mapping[str, Any]) -> None:
        if (manifest.get("apiVersion"), manifest.get("kind")) != (API_VERSION, KIND):
            self.add("kind", f"must be {API_VERSION} {KIND}, not {manifest.get('apiVersion')} {manifest.get('kind')}")
        metadata = self.mapping(manifest.get("metadata"), "metadata")
        if detail := names.subdomain_fault(metadata.get("name")):
            self.add("metadata.name", detail)
        if metadata.get("namespace") != NAMESPACE:
            self.add("metadata.namespace", f"must be {NAMESPACE}: a quota tree acts nowhere else")

    def node(self, value: object, where: str, parent: _Parent | None, depth: int) -> tuple[str, Limits]:
        """Reads a node and all below it; returns its name and its min."""
        body = self.mapping(value, where)
        for key in body.keys() - set(_FIELDS):
            self.add(f"{where}.{key}", f"is no field of a quota; known are {', '.join(_FIELDS)}")
        name = self.name(body.get("name"), where, parent)
        path = f"{parent.path}/{name}" if parent else name
        least, most = self.limits(body, "min", where), self.limits(body, "max", where)
        self.found(validation.own_faults(path, least, most, root=parent is None), where)
        self.found(flavors.own_faults(path, most), where)
        if parent:
            self.found(validation.ceiling_faults(path, most, parent.path, parent.ceiling), where)
        known = self.attributes(body.get("attributes"), where, path, least, parent)
        children = self.listing(body.get("children"), f"{where}.children")
        namespaces = self.namespaces(body.get("namespaces"), f"{where}.namespaces", path, leaf=not children)
        self.nodes.append(Node(path, name, parent.path if parent else "", least, most, namespaces, known))
        inner = _Parent(path, validation.lower_limits(most, parent.ceiling if parent else {}), known)
        self.where[path] = where, inner.ceiling
        if depth == DEEPEST and children:
            self.add(f"{where}.children", f"{path} is {DEEPEST} levels deep already: deeper trees are refused")
            return name, least
        self.children(children, where, inner, least, depth)
        return name, least

    def children(self, children: list[Any], where: str, parent: _Parent, least: Limits, depth: int) -> None:
        if children and attributes.shares_twice(parent.attributes):
            self.add(f"{where}.attributes.{attributes.RECLAIM}", f"{parent.path}: {attributes.SHARES_TWICE}")
        read = [self.node(child, f"{where}.children[{i}]", parent, depth + 1) for i, child in enumerate(children)]
        self.found(validation.sum_faults(parent.path, least, [each for _, each in read]), where)
        first: dict[str, int] = {}
        for i, (name, _) in enumerate(read):
            if first.setdefault(name, i) != i:
                self.add(
                    f"{where}.children[{i}].name", f"{parent.path} has a child {name} already (children[{first[name]}])"
                )

    def promised_flavors(self) -> None:
        """Checks that every min of a flavor can be had, whatever jobs on other flavors use."""
        promised = [node for node in self.nodes if node.parent and flavors.has_min(node.min)]
        for path in dict.fromkeys(above for node in promised for above in _paths_above(node.path)):
            where, ceiling = self.where[path]
            self.found(flavors.shared_faults(path, ceiling, self.flavors), where)
        for node in self.nodes[1:] if promised else ():
            self.found(flavors.sum_fault(node.path, node.min), self.where[node.path][0])
            if (lent := node.attributes.lendlimit) is not None:
                detail = flavors.kept_fault(node.path, node.min, lent)
                self.found([(f"attributes.{attributes.LENDLIMIT}", detail)] if detail else [], self.where[node.path][0])

    def name(self, value: object, where: str, parent: _Parent | None) -> str:
        if parent is None:
            if value not in (None, ROOT):
                self.add(f"{where}.name", f"must be {ROOT}, not {value!r}")
            return ROOT
        if detail := attributes.name_fault(value):
            self.add(f"{where}.name", detail)
        return str(value)

    def limits(self, body: Mapping[str, Any], key: str, where: str) -> Limits:
        stated = {} if body.get(key) is None else self.mapping(body[key], f"{where}.{key}")
        read, faults = validation.parse_limits(stated, lambda name: flavors.name_fault(name, self.flavors))
        self.found(((f"{key}.{resource}" if resource else key, detail) for resource, detail in faults), where)
        return read

    def attributes(self, value: object, where: str, path: str, least: Limits, parent: _Parent | None) -> Attributes:
        body = {} if value is None else self.mapping(value, f"{where}.attributes")
        known: Known = attributes.parse_attributes(
            body, least, parent.attributes if parent else Attributes(), root=parent is None
        )
        self.found(((f"attributes.{key}", f"{path}: {detail}") for key, detail in known.faults), where)
        self.warnings += [f"{where}.attributes.{key} of {path} is kept but not acted upon" for key in known.others]
        return known.attributes

    def namespaces(self, value: object, where: str, path: str, *, leaf: bool) -> tuple[str, ...]:
        listed = self.listing(value, where)
        if listed and not leaf:
            self.add(where, f"{path} has children: only leaves have namespaces")
        for i, namespace in enumerate(listed):
            if detail := names.label_fault(namespace):
                self.add(f"{where}[{i}]", detail)
            elif namespace in self.bound:
                self.add(
                    f"{where}[{i}]", f"{namespace} is in {self.bound[namespace]} already: one leaf for each namespace"
                )
            else:
                self.bound[namespace] = path
        return tuple(str(namespace) for namespace in listed)

    def found(self, faults: Iterable[tuple[str, str]], where: str) -> None:
        for suffix, detail in faults:
            self.add(f"{where}.{suffix}", detail)


def _stated_flavors(root: object) -> tuple[str, ...]:
    """The names in the root's table, in whatever state it is: its faults are reported with the attribute."""
    stated = root.get("attributes") if isinstance(root, Mapping) else None
    return flavors.stated_names(stated.get(flavors.FLAVORS)) if isinstance(stated, Mapping) else ()


def _paths_above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]
