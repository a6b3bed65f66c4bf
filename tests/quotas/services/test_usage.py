"""What is in use, borrowed and lent: the documentation's example, and laws on random trees."""

from hypothesis import given, settings
from hypothesis import strategies as st

from quotas.core.accounts.ledger import Charge
from quotas.core.trees.tree import Tree
from quotas.services import usage
from tests.quotas.core.builders import cpu, quota, tree
from tests.support.examples import examples

EXAMPLE = tree(8, quota("vision", 4, 8), quota("speech", 2, 6))


def report(of: Tree, *charges: Charge, waiting: tuple[Charge, ...] = ()) -> dict[str, usage.Amount]:
    return {path: node["cpu"] for path, node in usage.usage_by_path(of, charges, waiting).items()}


def test_it_tells_borrowed_from_lent_as_the_documentation_does():
    shown = report(
        EXAMPLE, Charge("root/vision", cpu(7)), waiting=(Charge("root/speech", cpu(3)),)
    )  # fmt: skip
    assert (shown["root/vision"].borrowed, shown["root/vision"].lent) == (3000, 0)
    assert (shown["root/speech"].borrowed, shown["root/speech"].lent) == (0, 1000)
    assert (shown["root"].used, shown["root"].requested, shown["root/speech"].requested) == (7000, 10000, 3000)


def test_it_counts_nothing_for_a_leaf_that_is_gone():
    assert report(EXAMPLE, Charge("root/old", cpu(7)))["root"].used == 0


def test_it_is_not_upset_by_jobs_that_ask_for_everything():
    huge = Charge("root/speech", {"cpu": 2**63 - 1})
    assert report(EXAMPLE, waiting=(huge, huge))["root"].used == 0


def test_it_passes_what_is_lent_down_to_the_leaves_that_lend_it():
    deep = tree(8, quota("a", 4, 8), quota("b", 4, 8, quota("x", 2, 8), quota("y", 1, 8)))
    shown = report(deep, Charge("root/a", cpu(7)))
    assert shown["root/b"].lent == 3000
    assert shown["root/b/x"].lent + shown["root/b/y"].lent == 2000


USE = st.lists(st.integers(0, 12), min_size=4, max_size=4)


@settings(max_examples=examples(100), deadline=None)
@given(least=st.lists(st.integers(0, 4), min_size=4, max_size=4), use=USE)
def test_it_never_lends_more_than_is_idle_nor_more_than_is_borrowed(least, use):
    quotas = [quota(f"q{i}", low, 99) for i, low in enumerate(least)]
    whole = tree(99, quota("in", 8, 99, *quotas[:2]), quota("out", 8, 99, *quotas[2:]))
    charges = [Charge(f"root/{'in' if i < 2 else 'out'}/q{i}", cpu(amount)) for i, amount in enumerate(use) if amount]
    shown = report(whole, *charges)
    for path, amount in shown.items():
        assert 0 <= amount.lent <= max(0, amount.min - amount.used), path
    borrowed = sum(each.borrowed for path, each in shown.items() if path.count("/") == 2)
    assert sum(each.lent for path, each in shown.items() if path.count("/") == 2) <= borrowed
