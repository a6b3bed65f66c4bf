"""Who lent to whom over a time: the rows and columns add up to what the tree of each moment says is lent and borrowed."""

from collections import defaultdict
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.services.series.lending import MOST_STEPS
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


def one_by_one(family: Family, used: dict[str, int], beyond: int) -> dict[Flow, float]:
    """What each lender gives each borrower at a moment, straight from the definition."""
    idle = {path: max(0, least - used[path]) for path, least in family.children.items()}
    sinks = {path: max(0, used[path] - least) for path, least in family.children.items()} | {family.path: beyond}
    outside = max(0, sum(used[path] for path in family.children) - family.min)
    own = max(0, family.min - sum(family.children.values()))
    left, rest = max(0, sum(sinks.values()) - outside - own), sum(idle.values())
    sources, left = {}, min(left, rest)
    for path, amount in idle.items():
        sources[path] = left * amount // rest if rest else 0
        left, rest = left - sources[path], rest - amount
    total = sum(sinks.values())
    sources[family.path] = total - sum(sources.values())
    return {
        Flow(family.path, lender, borrower): sources[lender] * sinks[borrower] / total
        for lender in sources
        for borrower in sinks
        if total and sources[lender] * sinks[borrower] and not lender == borrower == family.path
    }


def moment_by_moment(tops: list[Family], changes: list[tuple[int, str, int]], end: int) -> dict[Flow, float]:
    sums: dict[Flow, float] = defaultdict(float)
    for begin, until in pairwise(sorted({0, end, *(at for at, _, _ in changes if 0 <= at < end)})):
        used: dict[str, int] = defaultdict(int)
        for _, leaf, amount in (change for change in changes if change[0] <= begin):
            for depth in range(2, leaf.count("/") + 2):
                used["/".join(leaf.split("/")[:depth])] += amount
        lent: dict[str, int] = defaultdict(int)
        for family in tops:
            lent |= lending.lent_by_child(family, used, lent[family.path])
            for flow, amount in one_by_one(family, used, lent[family.path]).items():
                sums[flow] += amount * (until - begin)
    return sums


MINS = st.lists(st.integers(0, 9), min_size=4, max_size=4)
USES = st.lists(
    st.tuples(st.integers(-3, 30), st.sampled_from(LEAVES), st.integers(1, 7), st.integers(0, 20)), max_size=12
)


@given(mins=MINS, whole=st.integers(0, 30), inner=st.integers(0, 12), uses=USES, together=st.integers(1, 30))
def test_sums_are_those_of_each_lender_and_borrower_at_each_moment(mins, whole, inner, uses, together):
    tops = [
        Family("root", whole, {"root/a": inner, "root/b": mins[2], "root/c": mins[3]}),
        Family("root/a", inner, {"root/a/x": mins[0], "root/a/y": mins[1]}),
    ]
    changes = [each for at, leaf, amount, lasts in uses for each in ((at, leaf, amount), (at + lasts, leaf, -amount))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lending, "_TOGETHER", together)
        sums = lending.add_up([(0, tops)], changes, 25, PLENTY)
    expected = moment_by_moment(tops, changes, 25)
    assert sums.keys() == expected.keys()
    assert sums == pytest.approx(expected)


def test_of_a_hundred_queues_a_thousand_attempts_take_a_twentieth_of_what_one_answer_counts():
    rng, paths = Random(1), [f"root/q{number}" for number in range(100)]
    flat, changes = Family("root", 400, dict.fromkeys(paths, 4)), []
    for _ in range(1000):
        begin, leaf, gpus = rng.randrange(10_000), rng.choice(paths), rng.choice((1, 2, 4, 8))
        changes += [(begin, leaf, gpus), (begin + rng.randrange(3000), leaf, -gpus)]
    assert len(lending.add_up([(0, [flat])], changes, 10_000, MOST_STEPS // 20)) > 2500


def test_a_tree_that_is_too_wide_for_its_pairs_is_refused_before_they_take_memory():
    half = {f"root/{number}": number % 2 for number in range(100_000)}
    used = [(0, path, 1) for path, least in half.items() if not least]
    with pytest.raises(lending.TooMuchWork):
        lending.add_up([(0, [Family("root", 50_000, half)])], used, 10, MOST_STEPS)
