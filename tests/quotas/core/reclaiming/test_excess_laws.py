"""Laws of evictions above max on random trees: enough go, none that could stay, and none of a queue within its min."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from quotas.core.accounts.ledger import Ledger
from quotas.core.reclaiming import excess
from quotas.core.reclaiming.candidates import Running
from quotas.core.trees.tree import ExcessPolicy, Tree
from tests.quotas.core import forests
from tests.quotas.core.builders import NOON
from tests.support.examples import examples

SOME = settings(max_examples=examples(150), deadline=None)


@st.composite
def overfull(draw):
    """A tree some of whose nodes take back, and jobs that no limit has kept out."""
    tree = draw(forests.trees())
    policies = [draw(st.sampled_from(list(ExcessPolicy))) for _ in tree.nodes]
    nodes = (
        replace(node, attributes=replace(node.attributes, excess=policy))
        for node, policy in zip(tree.nodes, policies, strict=True)
    )
    tree = Tree(tuple(nodes))
    jobs = [
        Running(unit.id, unit.charge, unit.priority, NOON, lost_s=draw(st.sampled_from([0.0, 60.0, 9000.0])))
        for unit in draw(forests.units(tree, most=9))
    ]
    return tree, jobs


def above(tree, jobs):
    """By the definition, without a ledger: (node, resource) that take back and are above max, with what is used."""
    charges = [job.charge for job in jobs]
    return {
        (node.path, name): used
        for node in tree.nodes
        if node.attributes.excess is ExcessPolicy.TAKE_BACK
        for name, most in node.max.items()
        if (used := forests.used(tree, node, charges, name)) > most
    }


@SOME
@given(overfull())
def test_enough_go_and_none_that_could_stay(case):
    tree, jobs = case
    gone = [one.job for one in excess.plan_evictions(Ledger.from_charges(tree, (job.charge for job in jobs)), jobs)]
    left = [job for job in jobs if job not in gone]
    assert all(job.charge.preemptible for job in gone)
    for path, name in above(tree, left):
        inside = [job for job in left if job.leaf == path or job.leaf.startswith(f"{path}/")]
        soft = [job for job in inside if job.charge.preemptible and job.charge.amounts.get(name, 0)]
        assert not any(is_borrowed(tree, left, job, path, name) for job in soft)
    for job in gone:
        more = above(tree, [*left, job])
        on_path = {node.path for node in tree.to_root(job.leaf)}
        assert any(path in on_path and job.charge.amounts.get(name, 0) for path, name in more)


def is_borrowed(tree, jobs, job, path, name):
    """Whether each node from the job's leaf up to this one, itself left out, is above its min."""
    charges = [each.charge for each in jobs]
    below = [node for node in tree.to_root(job.leaf) if node.path.startswith(f"{path}/")]
    return all(forests.claim(tree, node, charges, name) > node.min.get(name, 0) for node in below)


@SOME
@given(overfull())
def test_it_takes_from_no_node_that_was_within_its_min(case):
    tree, jobs = case
    charges = [job.charge for job in jobs]
    for one in excess.plan_evictions(Ledger.from_charges(tree, charges), jobs):
        below = [node for node in tree.to_root(one.job.leaf) if node.path.startswith(f"{one.overrun.path}/")]
        name = one.overrun.resource
        assert all(forests.claim(tree, node, charges, name) > node.min.get(name, 0) for node in below)


@SOME
@given(overfull(), st.randoms())
def test_it_plans_the_same_whatever_the_order_and_leaves_the_ledger_as_it_was(case, rng):
    tree, jobs = case
    ledger = Ledger.from_charges(tree, (job.charge for job in jobs))
    before = ledger.held.copy()
    one = excess.plan_evictions(ledger, jobs)
    assert excess.plan_evictions(ledger, rng.sample(jobs, len(jobs))) == one
    assert (ledger.held.used == before.used).all() and (ledger.held.claims == before.claims).all()
