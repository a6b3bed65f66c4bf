"""Random valid trees up to five levels deep, random jobs for their leaves, and the slow, obvious way to judge one."""

import json
from dataclasses import replace
from datetime import timedelta

from hypothesis import strategies as st

from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.queues.admission import Admitted, check_admission
from quotas.core.reclaiming.candidates import Running
from quotas.core.trees.amounts import MAX_JOBS, UNLIMITED, of_job
from quotas.core.trees.tree import Node, Tree
from tests.quotas.core.builders import LEND, NOON, quota, tree, unit

RESOURCES = ("cpu", "nvidia.com/gpu")


@st.composite
def trees(draw, deepest=4, crowded=False):
    """Crowded: everybody may borrow everything, and some queues preempt by priority."""
    total = {name: draw(st.integers(4, 20)) for name in RESOURCES}
    top = _inner(draw, total, total, deepest, crowded)
    policy = draw(st.sampled_from(["Priority", "Block", "Round"]))
    return tree(total, *top, attributes={"queue-policy": policy})


def _inner(draw, low, ceiling, levels, crowded):
    """One to three children whose mins fit into ``low`` and whose maxes stay below ``ceiling``."""
    left, children = dict(low), []
    for i in range(draw(st.integers(1 + crowded, 3))):
        own = {name: draw(st.integers(0, left[name])) for name in RESOURCES}
        left = {name: left[name] - own[name] for name in RESOURCES}
        high = ceiling if crowded else {name: draw(st.integers(own[name], ceiling[name])) for name in RESOURCES}
        fields = {"weight": draw(st.sampled_from(["1", "2", "4", "0.5", "0"]))}
        if draw(st.booleans()):
            fields[LEND] = json.dumps({name: draw(st.integers(0, own[name])) for name in RESOURCES})
        if crowded and draw(st.booleans()):
            fields["preempt-policy"] = "PreemptLowerPriority"
        below = _inner(draw, own, high, levels - 1, crowded) if levels > 1 and draw(st.booleans()) else []
        if draw(st.integers(0, 3)) == 0:
            high = {**high, MAX_JOBS: draw(st.integers(0, 4))}
            below = []
        children.append(quota(f"n{i}", own, high, *below, attributes=fields))
    return children


@st.composite
def crowds(draw):
    """A ledger with what came to run while there was room, the running jobs, and one more that asks, mostly by right."""
    found = Ledger(draw(trees(crowded=True)))
    leaf = draw(st.sampled_from(found.tree.leaves))
    jobs = []
    sizes = st.tuples(st.sampled_from([4, 2, 1, 0, 6]), st.sampled_from([2, 1, 0, 4]))
    others = [each for each in found.tree.leaves if each is not leaf] or [leaf]
    for i in range(24):
        cores, gpus = draw(sizes)
        amounts = {"cpu": cores * 1000, "nvidia.com/gpu": gpus}
        into = draw(st.sampled_from([others[-1], *others, leaf]))
        charge = Charge(into.path, of_job(amounts), draw(st.sampled_from([True, True, True, False])))
        if isinstance(check_admission(found, into.path, charge.amounts, preemptible=charge.preemptible), Admitted):
            found.charge(charge)
            at = NOON + timedelta(seconds=draw(st.integers(0, 5)))
            jobs.append(Running(f"r{i}", charge, draw(st.integers(0, 2)), at, draw(st.booleans())))
    used = found.used(leaf.path)
    right = {name: max(leaf.min.get(name, 0) - used[name], 0) for name in RESOURCES}
    amounts = {name: draw(st.sampled_from([part, part // 2, 0, part + 1])) for name, part in right.items()}
    preemptor = unit("preemptor", priority=draw(st.integers(0, 2)))
    return found, jobs, replace(preemptor, charge=Charge(leaf.path, of_job(amounts), draw(st.booleans())))


@st.composite
def charges(draw, found):
    amounts = {"cpu": draw(st.integers(0, 9)) * 1000, "nvidia.com/gpu": draw(st.integers(0, 4))}
    leaf = draw(st.sampled_from([node.path for node in found.leaves]))
    return Charge(leaf, of_job(amounts), draw(st.booleans()))


@st.composite
def units(draw, found, most=12, prefix="u"):
    count = draw(st.integers(1, most))
    blank = [
        unit(f"{prefix}{i}", priority=draw(st.integers(0, 2)), after_s=draw(st.integers(0, 3))) for i in range(count)
    ]
    return [replace(each, charge=draw(charges(found))) for each in blank]


def below(found: Tree, node: Node, running: list[Charge]) -> list[Charge]:
    return [each for each in running if each.leaf == node.path or each.leaf.startswith(node.path + "/")]


def used(found: Tree, node: Node, running: list[Charge], name: str) -> int:
    return sum(each.amounts.get(name, 0) for each in below(found, node, running))


def claim(found: Tree, node: Node, running: list[Charge], name: str) -> int:
    """What is taken of a node, counting what each child keeps back for itself."""
    children = found.children.get(node.path, ())
    if not children:
        return used(found, node, running, name)
    return sum(max(claim(found, child, running, name), child.held_back(name)) for child in children)


def fits(found: Tree, running: list[Charge], asked: Charge) -> bool:
    """By the definition: lay the job in, and look at every node of its path."""
    after = [*running, asked]
    firm = [each for each in after if not each.preemptible]
    for node in found.to_root(asked.leaf):
        for name in [name for name, amount in asked.amounts.items() if amount]:
            high = node.max.get(name, UNLIMITED)
            taken = claim(found, node, after, name)
            if used(found, node, after, name) > high:
                return False
            if taken > high and taken > claim(found, node, running, name):
                return False
            guaranteed = name in node.min or name != MAX_JOBS
            if not asked.preemptible and guaranteed and used(found, node, firm, name) > node.min.get(name, 0):
                return False
    return True
