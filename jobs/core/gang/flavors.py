"""Which flavors a gang may use: for each choice what its pods then ask of nodes, and what its leaf is charged.

All pods with GPUs go to nodes of one flavor, except roles whose own node selector or affinity leaves another one only. Which
choice it is in the end is decided with its place; clusters and what is in use are not known here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jobs.core.gang.requirements import GangRequirements, PodRequirements, RoleRequirements
from jobs.core.gang.types import Gang
from quotas.core.trees import flavors
from quotas.core.trees.flavors import GPU, Flavors, Labels
from quotas.core.trees.tree import Tree


@dataclass(frozen=True, slots=True)
class FlavorOption:
    """One choice of flavors for all pods of a gang."""

    name: str
    """``h100``, or ``a10+h100``."""
    amounts: tuple[tuple[str, int], ...]
    """The GPUs of each flavor, by the names that quotas count them by."""
    needs: GangRequirements

    def of(self, gang: Gang) -> Gang:
        return replace(gang, needs=self.needs, flavors=self.amounts, needs_anyhow=gang.of_no_flavor().demand)


def options_of(tree: Tree, leaf: str, gang: Gang) -> tuple[FlavorOption, ...]:
    """The choices in the order in which they are tried; none where the tree has no flavors, or the gang asks for no GPUs."""
    if not tree.flavors or leaf not in tree.by_path:
        return ()
    return _options(gang, tree.by_path[leaf].attributes.preference.order or tuple(tree.flavors), tree.flavors)


def keeping_its_flavor(tree: Tree, gang: Gang) -> Gang:
    """A gang that its leaf is charged for already, on nodes of the flavors that it is charged for."""
    charged, anyhow = flavors.flavors_of(dict(gang.flavors)), gang.needs_anyhow or gang.demand
    options = _options(replace(gang, needs=anyhow), sorted(charged.keys() & tree.flavors.keys()), tree.flavors)
    alike = (option for option in options if flavors.flavors_of(dict(option.amounts)).keys() == charged.keys())
    option = next(alike, options[0] if options else None)
    return replace(gang, needs=option.needs, needs_anyhow=anyhow) if option else gang


def _options(gang: Gang, order: Sequence[str], known: Flavors) -> tuple[FlavorOption, ...]:
    demand = gang.demand
    asking = [part for part in demand.parts if _gpus(part)]
    if not asking or not order:
        return ()
    allowed = [[name for name in order if _agrees(part.ask, known[name])] or order for part in asking]
    choices = dict.fromkeys(tuple(name if name in may else may[0] for may in allowed) for name in order)
    return tuple(_option(gang, demand, asking, choice, known) for choice in choices)


def _option(
    gang: Gang, demand: GangRequirements, asking: list[RoleRequirements], choice: tuple[str, ...], known: Flavors
) -> FlavorOption:
    chosen = {part.role: name for part, name in zip(asking, choice, strict=True)}
    parts = tuple(
        replace(part, ask=_with_labels(part.ask, known[chosen[part.role]])) if part.role in chosen else part
        for part in demand.parts
    )
    amounts: dict[str, int] = {}
    if len(names := sorted(set(choice))) == 1:
        amounts[flavors.amount_name(names[0])] = gang.total[GPU]  # of a divided job also what is placed already
    else:
        for part in asking:
            name = flavors.amount_name(chosen[part.role])
            amounts[name] = amounts.get(name, 0) + part.replicas * _gpus(part)
    return FlavorOption("+".join(names), tuple(sorted(amounts.items())), replace(demand, parts=parts))


def _gpus(part: RoleRequirements) -> int:
    return dict(part.ask.request).get(GPU, 0)


def _agrees(ask: PodRequirements, labels: Labels) -> bool:
    """Whether its node selector and affinity leave nodes with these labels."""
    if any(labels.get(key, value) != value for key, value in ask.selector):
        return False
    return not ask.terms or any(all(m.key not in labels or m.holds(labels) for m in term) for term in ask.terms)


def _with_labels(ask: PodRequirements, labels: Labels) -> PodRequirements:
    """Both its own selector and the flavor's: where they contradict each other no node will do."""
    return replace(ask, selector=tuple(sorted({*ask.selector, *labels.items()})))


def labels_by_role(gang: Gang) -> dict[str, dict[str, str]]:
    """The node labels that each role of a placed gang is kept to for its flavor, beside what it asks of nodes itself."""
    if gang.needs_anyhow is None:
        return {}
    before = {part.role: part.ask.selector for part in gang.needs_anyhow.parts}
    added = {part.role: dict({*part.ask.selector} - {*before[part.role]}) for part in gang.demand.parts}
    return {role: labels for role, labels in added.items() if labels}
