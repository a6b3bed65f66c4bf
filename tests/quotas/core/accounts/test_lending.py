"""Who lent to whom over a time: the rows and columns add up to what the tree of each moment says is lent and borrowed."""

from collections import defaultdict
from random import Random

import pytest

from quotas.core.accounts import lending
from quotas.core.accounts.ledger import Charge
from quotas.core.accounts.lending import Family, Flow
from quotas.core.trees.tree import Tree
from quotas.services import usage
from tests.quotas.core.builders import quota, tree

PLENTY = 10**9
LEAVES = ("root/a/x", "root/a/y", "root/b", "root/c")


def families(of: Tree) -> list[Family]:
    return [
        Family(node.path, node.min["cpu"], {child.path: child.min.get("cpu", 0) for child in of.children[node.path]})
        for node in of.nodes
        if node.path in of.children
    ]


def a_tree(rng: Random) -> Tree:
    low = [rng.randint(0, 4) for _ in range(4)]
    return tree(
        20,
        quota("a", 8, 20, quota("x", low[0], 20), quota("y", low[1], 20)),
        quota("b", low[2], 20),
        quota("c", low[3], 20),
    )


def test_a_borrower_takes_from_what_no_min_contains_first_and_then_from_each_lender_in_proportion():
    whole = tree(12, quota("a", 6, 12), quota("b", 3, 12), quota("c", 1, 12))
    sums = lending.add_up([(0, families(whole))], [(0, "root/c", 9000)], 10, PLENTY)
    assert sums == {
        Flow("root", "root", "root/c"): 20_000, Flow("root", "root/a", "root/c"): 40_000,
        Flow("root", "root/b", "root/c"): 20_000,
    }  # fmt: skip


def test_what_a_child_lends_beyond_its_parent_is_the_parents_loan():
    whole = tree(10, quota("a", 6, 10, quota("x", 4, 10), quota("y", 2, 10)), quota("b", 4, 10))
    sums = lending.add_up([(0, families(whole))], [(0, "root/b", 7000), (0, "root/a/y", 2000)], 1, PLENTY)
    assert sums == {Flow("root", "root/a", "root/b"): 3000, Flow("root/a", "root/a/x", "root/a"): 3000}


@pytest.mark.parametrize("seed", range(12))
def test_rows_and_columns_are_what_is_lent_and_borrowed_at_each_moment(seed):
    rng = Random(seed)
    trees = [(at, a_tree(rng)) for at in (0, 40)]
    changes, use = [], defaultdict(int)
    for at in sorted(rng.randint(-5, 90) for _ in range(30)):
        leaf = rng.choice((*LEAVES, "root/gone"))
        amount = rng.choice((1000, 2000, -1000)) if use[leaf] >= 1000 else 3000
        changes.append((at, leaf, amount))
        use[leaf] += amount
    rng.shuffle(changes)
    lent, borrowed = defaultdict(float), defaultdict(float)
    for at in range(80):
        now = [of for since, of in trees if since <= at][-1]
        charges = [
            Charge(leaf, {"cpu": sum(each[2] for each in changes if each[0] <= at and each[1] == leaf)})
            for leaf in LEAVES
        ]
        for path, amounts in usage.usage_by_path(now, charges, ()).items():
            lent[path] += amounts["cpu"].lent
            borrowed[path] += amounts["cpu"].borrowed
    sums = lending.add_up([(at, families(of)) for at, of in trees], changes, 80, PLENTY)
    for path in trees[0][1].by_path.keys() - {"root"}:
        parent = path.rpartition("/")[0]
        assert sum(v for k, v in sums.items() if (k.parent, k.lender) == (parent, path)) == pytest.approx(lent[path])
        assert sum(v for k, v in sums.items() if (k.parent, k.borrower) == (parent, path)) == pytest.approx(
            borrowed[path]
        )


def test_counting_ends_at_the_steps_that_the_caller_has_time_for_however_wide_the_tree_is():
    wide = tree(400, *(quota(f"q{number}", 1, 400) for number in range(200)))
    changes = [(at, f"root/q{at % 100}", 2000) for at in range(1, 1000)]
    with pytest.raises(lending.TooMuchWork):
        lending.add_up([(0, families(wide))], changes, 1000, 100_000)
    assert lending.add_up([(0, families(wide))], changes[:5], 1000, 100_000)
