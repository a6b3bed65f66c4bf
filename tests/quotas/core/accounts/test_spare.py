"""Free quota that nobody is promised: what a queue may use of it without going into the min of another."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.accounts.spare import leaves_mins_alone
from quotas.core.trees.amounts import of_job
from tests.quotas.core import forests
from tests.quotas.core.builders import quota, tree
from tests.support.examples import examples

GPU = "nvidia.com/gpu"
SOME = settings(max_examples=examples(200), deadline=None)


def gpus(amount: int) -> dict[str, int]:
    return {GPU: amount}


@pytest.mark.parametrize(("more", "allowed"), [(2, True), (3, False)])
def test_a_queue_may_use_what_no_min_needs(more, allowed):
    """Of 8 the idle b keeps 4, and a has 2 of its 2."""
    ledger = Ledger(tree(gpus(8), quota("a", gpus(2), gpus(8)), quota("b", gpus(4), gpus(8))))
    ledger.charge(Charge("root/a", of_job(gpus(2)), True))
    assert leaves_mins_alone(ledger, Charge("root/a", gpus(more), True)) is allowed


def test_what_another_queue_uses_of_its_min_is_not_kept_twice():
    ledger = Ledger(tree(gpus(8), quota("a", gpus(2), gpus(8)), quota("b", gpus(4), gpus(8))))
    ledger.charge(Charge("root/b", of_job(gpus(4)), True))
    assert leaves_mins_alone(ledger, Charge("root/a", gpus(4), True))
    assert not leaves_mins_alone(ledger, Charge("root/a", gpus(5), True))


def need_of(found, node, running, name, leaf, more):
    """By the definition, from the leaves up."""
    used = sum(charge.amounts.get(name, 0) for charge in running if f"{charge.leaf}/".startswith(f"{node.path}/"))
    used += more if f"{leaf}/".startswith(f"{node.path}/") else 0
    children = sum(need_of(found, child, running, name, leaf, more) for child in children_of(found, node))
    return max(used, node.min.get(name, 0), children)


def children_of(found, node):
    return [each for each in found.nodes if each.path != node.path and each.path.rpartition("/")[0] == node.path]


@SOME
@given(st.data())
def test_it_is_so_by_the_definition_on_any_tree(data):
    ledger, jobs, _ = data.draw(forests.crowds())
    found, leaf = ledger.tree, data.draw(st.sampled_from([node.path for node in ledger.tree.leaves]))
    more, charges = data.draw(st.integers(1, 6)), [job.charge for job in jobs]
    above = [node for node in found.nodes if leaf.startswith(f"{node.path}/")]
    expected = all(
        sum(need_of(found, child, charges, GPU, leaf, more) for child in children_of(found, node))
        <= node.max.get(GPU, 10**18)
        for node in above
    )
    promised = any(node.min.get(GPU) for node in found.nodes[1:])
    assert leaves_mins_alone(ledger, Charge(leaf, {GPU: more}, True)) == (expected or not promised)
