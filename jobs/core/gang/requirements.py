"""What a gang asks of nodes: per role a request, and which nodes it may run on, with Kubernetes' meaning.

Everything here is frozen and hashable: pods that ask alike share one `PodRequirements`, and the engine counts once for each
of these how many such pods every node holds. It must not know clusters, policies or quotas.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any, Self

from fleet.core import devices, units
from fleet.core.prices import MODEL_LABELS
from fleet.kube.requests import selectors
from jobs.core.taints import Taint, Toleration, untolerated

HOSTNAME = "kubernetes.io/hostname"
NODE_NAME = "metadata.name"
ADD_ONS = frozenset({"volcano"})
"""Schedulers that not every cluster has, by the name pods ask for them."""
CLUSTER = "\0cluster"
"""In place of a label: the cluster of a node that has a class of its own name, for names are unique in a cluster only."""
ANY_NAME = "\0"
"""Stands for the name of every node that no selector names; no node can be called so."""

Request = tuple[tuple[str, int], ...]
"""(resource, whole units), sorted by name, zeros left out."""


@dataclass(frozen=True, slots=True)
class Match:
    """One condition of a node selector term."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return self._compares(value)
        return False

    def _compares(self, value: str | None) -> bool:
        try:
            number, bound = int(value or ""), int(self.values[0])
        except (ValueError, IndexError):
            return False
        return number > bound if self.operator == "Gt" else number < bound


Terms = tuple[tuple[Match, ...], ...]
"""One of them, all of its conditions."""


@dataclass(frozen=True, slots=True)
class NodeClass:
    """What nodes have in common: nodes of one class differ only in name, place and what is free on them."""

    labels: tuple[tuple[str, str], ...]
    """The node's labels; its own name is replaced by `ANY_NAME` unless a selector names this node."""
    taints: tuple[Taint, ...]
    allocatable: Request
    usable: bool
    """Ready, not cordoned and not excluded; nothing new goes to nodes that are not."""
    excluded: str = ""
    """Until when and why nothing new goes to them although they are ready; empty: they are not excluded."""

    def __str__(self) -> str:
        devices = [f"{amount} {name}" for name, amount in self.allocatable if "/" in name]
        return f"nodes with {', '.join(devices)}" if devices else "nodes without devices"


@dataclass(frozen=True, slots=True)
class PodRequirements:
    """What one pod asks of its node."""

    request: Request
    selector: tuple[tuple[str, str], ...] = ()
    terms: Terms = ()
    """Required node affinity: one of the terms, all of its conditions. No term: no restriction."""
    tolerations: tuple[Toleration, ...] = ()
    avoids: tuple[tuple[str, str, str], ...] = ()
    """(cluster, node, until when and why) of nodes that are excluded for its job."""
    volumes: tuple[tuple[str, Terms], ...] = ()
    """The claims it mounts whose volumes are not reached from every node, with the terms of the nodes that reach them."""

    @classmethod
    def from_request(cls, request: Mapping[str, int], **fields: Any) -> Self:
        return cls(tuple(sorted((name, amount) for name, amount in request.items() if amount > 0)), **fields)

    @property
    def names(self) -> frozenset[str]:
        """The nodes it asks for, or refuses, by name."""
        terms = (*self.terms, *(term for _, of_volume in self.volumes for term in of_volume))
        conditions = [m for term in terms for m in term if m.key in (HOSTNAME, NODE_NAME)]
        named = {value for condition in conditions for value in condition.values}
        avoided = {node for _, node, _ in self.avoids}
        return frozenset(named | avoided | {value for key, value in self.selector if key == HOSTNAME})

    def refusal(self, node: NodeClass) -> str | None:
        """Why no pod of this kind may run on such nodes, however free they are."""
        labels = dict(node.labels)
        if excluded := self.exclusion(node):
            return f"are excluded {excluded}"
        if not node.usable:
            return "are not ready or cordoned"
        for key, value in self.selector:
            if labels.get(key) != value:
                return f"lack the label {key}={value} of its nodeSelector"
        if self.terms and not _holds(self.terms, labels):
            return "match no term of its required node affinity"
        for claim, terms in self.volumes:
            if not _holds(terms, labels):
                return f"do not reach the volume of claim {claim}"
        if (taint := untolerated(node.taints, self.tolerations)) is not None:
            return f"have the taint {taint}, which it does not tolerate"
        return None

    def exclusion(self, node: NodeClass) -> str:
        """Until when and why such nodes are excluded, for everyone or for its job; empty: they are not."""
        if node.excluded or not self.avoids:
            return node.excluded
        labels = dict(node.labels)
        place = labels.get(CLUSTER), labels.get(NODE_NAME)
        return next((until for cluster, name, until in self.avoids if place == (cluster, name)), "")


def holds(terms: Terms, node: NodeClass) -> bool:
    """Whether such nodes match one of the terms, whatever their taints."""
    return _holds(terms, dict(node.labels))


def _holds(terms: Terms, labels: Mapping[str, str]) -> bool:
    return any(all(match.holds(labels) for match in term) for term in terms)


@dataclass(frozen=True, slots=True)
class RoleRequirements:
    """Pods of one role."""

    role: str
    replicas: int
    ask: PodRequirements
    scheduler: str = ""
    """The scheduler its pods name, if it is an add-on that a cluster may lack."""


@dataclass(frozen=True, slots=True)
class AntiAffinity:
    """Pods of the two roles never share a node or, with another key than the hostname, nodes of one value of that label."""

    key: str
    one: str
    other: str


@dataclass(frozen=True, slots=True)
class TopologyConstraint:
    """The whole gang inside one domain of the network: the smallest that holds it."""

    level: int | None = None
    """At most this wide, counted from the widest (0); None: any."""
    required: bool = False


@dataclass(frozen=True, slots=True)
class GangRequirements:
    """A gang as the fit sees it."""

    parts: tuple[RoleRequirements, ...]
    apart: tuple[AntiAffinity, ...] = ()
    within: TopologyConstraint = TopologyConstraint()
    data: frozenset[tuple[str, str]] = frozenset()
    """Cluster labels that say its data is near."""

    @property
    def avoids(self) -> tuple[tuple[str, str, str], ...]:
        return next((part.ask.avoids for part in self.parts), ())

    def avoiding(self, nodes: tuple[tuple[str, str, str], ...]) -> "GangRequirements":
        """The same without these nodes, ``(cluster, node, until when and why)``."""
        parts = tuple(replace(part, ask=replace(part.ask, avoids=nodes)) for part in self.parts)
        return replace(self, parts=parts)

    def mounting(self, volumes: Mapping[str, tuple[tuple[str, Terms], ...]]) -> "GangRequirements":
        """The same where the pods of a role go to nodes that reach these volumes of their claims."""
        parts = (replace(p, ask=replace(p.ask, volumes=volumes.get(p.role, ()))) for p in self.parts)
        return replace(self, parts=tuple(parts))

    def placed_like(self, other: "GangRequirements") -> "GangRequirements":
        """The same with the nodes that the other avoids, and those of its volumes: no manifest says them."""
        return self.avoiding(other.avoids).mounting({part.role: part.ask.volumes for part in other.parts})

    @property
    def models(self) -> frozenset[str]:
        """GPU models that its node selectors name."""
        pairs = (pair for part in self.parts for pair in part.ask.selector)
        return frozenset(value for key, value in pairs if key in MODEL_LABELS)

    @property
    def schedulers(self) -> frozenset[str]:
        return frozenset(part.scheduler for part in self.parts if part.scheduler)

    @property
    def devices(self) -> int:
        return sum(part.replicas * devices.count(dict(part.ask.request)) for part in self.parts)

    @property
    def total(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for part in self.parts:
            for name, amount in part.ask.request:
                total[name] = total.get(name, 0) + part.replicas * amount
        return total


def parse_pod_requirements(
    roles: Iterable[tuple[str, int, Mapping[str, Any]]],
    *,
    within: TopologyConstraint | None = None,
    scheduler: str = "",
    data: frozenset[tuple[str, str]] = frozenset(),
    requests: Mapping[str, Mapping[str, int]] | None = None,
) -> GangRequirements:
    """The demand of ``(role, replicas, pod template)``; pod anti-affinity counts between the templates' own labels.

    ``scheduler`` is for pods whose template names none. ``requests`` are what one pod of each role asks for, where that has
    been read from the templates before.
    """
    roles_with_pods = [(role, replicas, template) for role, replicas, template in roles if replicas > 0]
    parts = tuple(
        _parse_role(role, replicas, template.get("spec") or {}, scheduler, (requests or {}).get(role))
        for role, replicas, template in roles_with_pods
    )
    labels = {role: (t.get("metadata") or {}).get("labels") or {} for role, _, t in roles_with_pods}
    apart = {
        pair
        for role, _, template in roles_with_pods
        for pair in _parse_anti_affinity(role, template.get("spec") or {}, labels)
    } | {*_parse_host_ports((role, template) for role, _, template in roles_with_pods)}
    return GangRequirements(
        parts, tuple(sorted(apart, key=lambda a: (a.key, a.one, a.other))), within or TopologyConstraint(), data
    )


def requirements_as_json(demand: GangRequirements) -> dict[str, dict[str, Any]]:
    """Per role what its pods ask of nodes beyond amounts, as JSON that `of_stored` reads; nothing for roles that do not."""
    stored: dict[str, dict[str, Any]] = {}
    for part in demand.parts:
        ask = part.ask
        apart = [[rule.key, rule.other] for rule in demand.apart if rule.one == part.role]
        needs: dict[str, Any] = {
            "scheduler": part.scheduler,
            "selector": [list(pair) for pair in ask.selector],
            "terms": _terms_as_json(ask.terms),
            "tolerations": [[t.key, t.operator, t.value, t.effect, t.seconds] for t in ask.tolerations],
            "apart": apart,
        }
        if any(needs.values()):
            stored[part.role] = {name: value for name, value in needs.items() if value}
    if demand.within != TopologyConstraint() and demand.parts:
        stored.setdefault(demand.parts[0].role, {})["within"] = [demand.within.level, demand.within.required]
    if demand.data and demand.parts:
        stored.setdefault(demand.parts[0].role, {})["data"] = [list(pair) for pair in sorted(demand.data)]
    return stored


def of_stored(roles: Iterable[Mapping[str, Any]]) -> GangRequirements | None:
    """The demand of stored roles, ``{name, replicas, request, needs}``; None when no role asks more than amounts."""
    running_roles = [role for role in roles if role["replicas"]]
    if not any(role.get("needs") for role in running_roles):
        return None
    parts = tuple(_of_needs(role) for role in running_roles)
    names = {part.role for part in parts}
    pairs = {
        AntiAffinity(key, role["name"], other)
        for role in running_roles
        for key, other in role.get("needs", {}).get("apart", [])
    }
    apart = sorted((a for a in pairs if a.other in names), key=lambda a: (a.key, a.one, a.other))
    within = next(
        (TopologyConstraint(*role["needs"]["within"]) for role in running_roles if "within" in role.get("needs", {})),
        TopologyConstraint(),
    )
    data = frozenset((key, value) for role in running_roles for key, value in role.get("needs", {}).get("data", []))
    return GangRequirements(parts, tuple(apart), within, data)


def ask_of_stored(role: Mapping[str, Any]) -> PodRequirements:
    """What one pod of a stored role asks."""
    needs = role.get("needs", {})
    return PodRequirements.from_request(
        role["request"],
        selector=tuple((key, value) for key, value in needs.get("selector", [])),
        terms=stored_terms(needs.get("terms", [])),
        tolerations=tuple(Toleration(k, o, v, e, s) for k, o, v, e, s in needs.get("tolerations", [])),
    )


def stored_terms(stored: Iterable[Iterable[Any]]) -> Terms:
    return tuple(tuple(Match(key, operator, tuple(values)) for key, operator, values in term) for term in stored)


def _terms_as_json(terms: Terms) -> list[list[list[Any]]]:
    return [[[match.key, match.operator, list(match.values)] for match in term] for term in terms]


def volume_terms(volume: Mapping[str, Any]) -> list[list[list[Any]]]:
    """From which nodes a PersistentVolume is reached, as JSON that `stored_terms` reads; empty: from all.

    A member's answer is not trusted to be sound: what cannot be read restricts nothing.
    """
    try:
        required = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required") or {}
        terms = tuple(_parse_term(term) for term in required.get("nodeSelectorTerms") or [])
    except (AttributeError, TypeError, ValueError):
        return []
    are_texts = (isinstance(text, str) for term in terms for m in term for text in (m.key, m.operator, *m.values))
    return _terms_as_json(terms) if all(are_texts) else []


def _of_needs(role: Mapping[str, Any]) -> RoleRequirements:
    return RoleRequirements(
        role["name"], role["replicas"], ask_of_stored(role), role.get("needs", {}).get("scheduler", "")
    )


def _parse_role(
    role: str, replicas: int, spec: Mapping[str, Any], scheduler: str, request: Mapping[str, int] | None
) -> RoleRequirements:
    named = spec.get("schedulerName") or scheduler
    ask = _parse_pod(spec, units.pod_request(spec) if request is None else request)
    return RoleRequirements(role, replicas, ask, named if named in ADD_ONS else "")


def _parse_pod(spec: Mapping[str, Any], request: Mapping[str, int]) -> PodRequirements:
    required = _required_terms(spec, "nodeAffinity") or {}
    return PodRequirements.from_request(
        request,
        selector=tuple(sorted((str(k), str(v)) for k, v in (spec.get("nodeSelector") or {}).items())),
        terms=tuple(_parse_term(term) for term in required.get("nodeSelectorTerms") or []),
        tolerations=tuple(_parse_toleration(entry) for entry in spec.get("tolerations") or []),
    )


def _required_terms(spec: Mapping[str, Any], kind: str) -> Any:
    affinity = (spec.get("affinity") or {}).get(kind) or {}
    return affinity.get("requiredDuringSchedulingIgnoredDuringExecution")


def _parse_term(term: Mapping[str, Any]) -> tuple[Match, ...]:
    """An empty term matches nothing, as in Kubernetes."""
    entries = [*(term.get("matchExpressions") or []), *(term.get("matchFields") or [])]
    matches = (Match(e.get("key", ""), e.get("operator", ""), tuple(e.get("values") or ())) for e in entries)
    return tuple(matches) or (Match("", "Never"),)


def _parse_toleration(entry: Mapping[str, Any]) -> Toleration:
    return Toleration(
        key=entry.get("key") or "",
        operator=entry.get("operator") or "Equal",
        value=entry.get("value") or "",
        effect=entry.get("effect") or "",
        seconds=entry.get("tolerationSeconds"),
    )


def _parse_anti_affinity(
    role: str, spec: Mapping[str, Any], labels: Mapping[str, Mapping[str, str]]
) -> Iterable[AntiAffinity]:
    terms: Sequence[Mapping[str, Any]] = _required_terms(spec, "podAntiAffinity") or ()
    for term in terms:
        for other, other_labels in labels.items():
            if _selects(term.get("labelSelector"), other_labels):
                one, two = sorted((role, other))
                yield AntiAffinity(term.get("topologyKey", ""), one, two)


def _parse_host_ports(roles: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterable[AntiAffinity]:
    """Pods that listen on the same port of their node never share one."""
    ports = {role: _host_ports(template.get("spec") or {}) for role, template in roles}
    for one, other in combinations_with_replacement(sorted(ports), 2):
        if ports[one] & ports[other]:
            yield AntiAffinity(HOSTNAME, one, other)


def _host_ports(spec: Mapping[str, Any]) -> frozenset[tuple[int, str]]:
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    field = "containerPort" if spec.get("hostNetwork") else "hostPort"
    entries = [port for container in containers for port in container.get("ports") or ()]
    return frozenset((port[field], port.get("protocol") or "TCP") for port in entries if port.get(field))


def _selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """A missing selector matches no pod; an empty one every pod."""
    return selector is not None and selectors.matches_label_selector(selector, labels)
