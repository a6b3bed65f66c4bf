"""Laws of the quota on random trees and random streams of jobs, and the fast way against the slow, obvious one."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from quotas.core.accounts.ledger import Ledger
from quotas.core.queues import fair_share
from quotas.core.queues.admission import Admitted, Code, check_admission, max_admissible
from quotas.core.trees.amounts import MAX_JOBS, UNLIMITED
from quotas.core.trees.tree import QueuePolicy
from tests.quotas.core import forests
from tests.quotas.core.builders import names
from tests.support.examples import examples

SOME = settings(max_examples=examples(150), deadline=None)


def says(ledger, charge):
    return check_admission(ledger, charge.leaf, charge.amounts, preemptible=charge.preemptible)


def stream(data, steps=10):
    """A ledger after a random stream of jobs that came, were judged, and left; yields it after every step."""
    ledger, running = Ledger(data.draw(forests.trees())), []
    for _ in range(data.draw(st.integers(1, steps))):
        if running and data.draw(st.integers(0, 3)) == 0:
            ledger.release(running.pop(data.draw(st.integers(0, len(running) - 1))))
        else:
            charge = data.draw(forests.charges(ledger.tree))
            if isinstance(says(ledger, charge), Admitted):
                ledger.charge(charge)
                running.append(charge)
        yield ledger, running


@SOME
@given(st.data())
def test_it_conserves_what_is_used(data):
    for ledger, running in stream(data):
        firm = [each for each in running if not each.preemptible]
        for row, node in enumerate(ledger.tree.nodes):
            for column, name in enumerate(ledger.resources):
                assert ledger.held.used[row, column] == forests.used(ledger.tree, node, running, name)
                assert ledger.held.firm[row, column] == forests.used(ledger.tree, node, firm, name)
                assert ledger.held.claims[row, column] == forests.claim(ledger.tree, node, running, name)
    for charge in list(running):
        ledger.release(charge)
    assert all((getattr(ledger.held, each) == getattr(ledger.idle, each)).all() for each in ("used", "firm", "claims"))


@SOME
@given(st.data())
def test_it_never_goes_above_max_nor_firmly_above_min(data):
    for ledger, _ in stream(data):
        assert (ledger.held.used <= ledger.max).all()
        assert ((ledger.held.firm <= ledger.min) | ~ledger.guarded).all()


@SOME
@given(st.data())
def test_it_judges_as_the_definition_does(data):
    for ledger, running in stream(data):
        charge = data.draw(forests.charges(ledger.tree))
        assert isinstance(says(ledger, charge), Admitted) == forests.fits(ledger.tree, running, charge)


@SOME
@given(st.data())
def test_it_admits_no_more_alike_than_it_foretells(data):
    for ledger, _ in stream(data, steps=3):
        charge = data.draw(forests.charges(ledger.tree))
        room = max_admissible(ledger, charge.leaf, charge.amounts)
        with ledger.charged(()):
            for _ in range(min(room, 20)):
                if not isinstance(says(ledger, charge), Admitted):
                    break
                ledger.charge(charge)
            else:
                assert room > 20 or not isinstance(says(ledger, charge), Admitted)


@SOME
@given(st.data())
def test_it_says_never_exactly_when_an_empty_tree_says_no(data):
    for ledger, _ in stream(data):
        charge = data.draw(forests.charges(ledger.tree))
        answer = says(ledger, charge)
        never = not isinstance(answer, Admitted) and answer.code is Code.NEVER_FITS
        assert never == (not forests.fits(ledger.tree, [], charge))


@SOME
@given(st.data())
def test_it_refuses_an_entitled_job_only_because_somebody_borrows(data):
    """What holds without reclaim: where no leaf is above its min, no job within its leaf's min waits for room."""
    for ledger, _ in stream(data):
        charge = data.draw(forests.charges(ledger.tree))
        answer = says(ledger, charge)
        if isinstance(answer, Admitted) or not answer.entitled:
            continue
        column = ledger.column[answer.resource]
        rows = [ledger.row[leaf.path] for leaf in ledger.tree.leaves if leaf.path != charge.leaf]
        assert any(ledger.held.used[row, column] > ledger.min[row, column] for row in rows)


@SOME
@given(st.data())
def test_it_admits_every_promise_while_nobody_borrows(data):
    for ledger, _ in stream(data):
        charge = data.draw(forests.charges(ledger.tree))
        rows = [ledger.row[leaf.path] for leaf in ledger.tree.leaves]
        own = ledger.row[charge.leaf]
        after = ledger.held.used[own] + ledger.vector(charge.amounts)
        promised = ((after <= ledger.min[own]) | ~ledger.guarded[own]).all()
        nobody_borrows = ((ledger.held.used[rows] <= ledger.min[rows]) | ~ledger.guarded[rows]).all()
        if promised and nobody_borrows:
            answer = says(ledger, charge)
            assert isinstance(answer, Admitted) or answer.resource == MAX_JOBS


@SOME
@given(st.data())
def test_it_answers_for_every_job_once_and_always_the_same(data):
    tree = data.draw(forests.trees())
    waiting = data.draw(forests.units(tree))
    one = fair_share.plan_admission(Ledger(tree), waiting)
    two = fair_share.plan_admission(Ledger(tree), data.draw(st.permutations(waiting)))
    assert names(one.admitted) == names(two.admitted)
    assert sorted(names([*one.admitted, *(unit for unit, _ in one.waits)])) == sorted(names(waiting))


@SOME
@given(st.data())
def test_it_leaves_nobody_waiting_who_would_fit_unless_behind(data):
    tree = data.draw(forests.trees())
    ledger = Ledger(tree)
    made = fair_share.plan_admission(ledger, data.draw(forests.units(tree)))
    for unit, reason in made.waits:
        assert isinstance(reason, fair_share.Behind) or not isinstance(says(ledger, unit.charge), Admitted)
    assert (
        fair_share.plan_admission(
            ledger, [unit for unit, reason in made.waits if not isinstance(reason, fair_share.Behind)]
        ).admitted
        == []
    )


@SOME
@given(st.data())
def test_it_orders_as_the_slow_tournament_does(data):
    tree = data.draw(forests.trees())
    waiting = data.draw(forests.units(tree))
    ledger, running = Ledger(tree), []
    given_out = fair_share.FairShareIterator(ledger, waiting)
    left = [
        unit
        for unit in waiting
        if tree.by_path[unit.leaf].attributes.queue_policy is QueuePolicy.BLOCK or can(tree, unit)
    ]
    while (unit := given_out.next()) is not None:
        assert unit.name == slow_offer(tree, left, running).name
        left.remove(unit)
        ledger.charge(unit.charge)
        running.append(unit.charge)
        given_out.admitted(unit)
    assert left == []


def can(tree, unit):
    """Whether it fits into the empty tree."""
    return isinstance(says(Ledger(tree), unit.charge), Admitted)


def slow_offer(tree, waiting, running):
    """The best job; or one within min of the next side, where at some node on its way both sides would borrow and hide one."""
    best = slow_winner(tree, tree.nodes[0], waiting, running)[1]
    for node in tree.to_root(best.leaf)[:-1]:
        sides = [(each, slow_winner(tree, each, waiting, running)) for each in tree.children[node.parent]]
        hiding = sorted((won[0], each.path) for each, won in sides if won and won[0][0] == 1)
        if len(hiding) > 1 and hiding[0][1] == node.path:
            return min(slow_modest(tree, tree.by_path[hiding[1][1]], waiting, running), key=lambda unit: unit.place)
    return best


def slow_winner(tree, node, waiting, running):
    """(claim, unit) of the best job below a node, every claim worked out anew."""
    children = tree.children.get(node.path, ())
    if not children:
        best = min((unit for unit in waiting if unit.leaf == node.path), key=lambda unit: unit.place, default=None)
    else:
        found = [slow_winner(tree, child, waiting, running) for child in children]
        best = min((each for each in found if each), key=lambda each: each[0], default=(None, None))[1]
    return best and (slow_claim(tree, node, best, slow_modest(tree, node, waiting, running), running), best)


def slow_modest(tree, node, waiting, running):
    """Those below a node that stay within its min; of queues that block, nobody."""
    if not node.parent:
        return []
    below = [unit for unit in waiting if node.path in {each.path for each in tree.to_root(unit.leaf)}]
    free = [unit for unit in below if tree.by_path[unit.leaf].attributes.queue_policy is not QueuePolicy.BLOCK]
    return [unit for unit in free if slow_within(tree, node, unit, running)]


def slow_claim(tree, node, unit, modest, running):
    if not node.parent:
        return (0, 0, unit.place)
    within = slow_within(tree, node, unit, running)
    rank = 0 if within else 1 if modest else 2
    if tree.by_path[node.parent].attributes.queue_policy is QueuePolicy.ROUND:
        return (rank, float(slow_turn(tree, node, running)), unit.place)
    return (rank, 0.0 if within else float(slow_share(tree, node, unit, running)), unit.place)


def slow_turn(tree, node, running):
    """The largest part of anything consumed that the node has, by weight."""
    names = set(tree.resources) - {MAX_JOBS, "pods"}
    parts = [Fraction(forests.used(tree, node, running, n), max(tree.ceiling(node.parent, n), 1)) for n in names]
    jobs = Fraction(forests.used(tree, node, running, MAX_JOBS), UNLIMITED)
    return by_weight(max(parts, default=0) or jobs, node)


def by_weight(amount, node):
    weight = node.attributes.weight
    return float(amount) / weight if weight else 1e12 + float(amount)


def slow_within(tree, node, unit, running):
    """In what somebody is promised, if it asks for any of that; counts alone are no such thing."""
    promised = {name for each in tree.nodes if each.parent for name, amount in each.min.items() if amount}
    asked = {name for name, amount in unit.charge.amounts.items() if amount} & promised
    if not asked - {MAX_JOBS}:
        return slow_share(tree, node, unit, running) == 0
    judged = {name for name in asked if name in node.min or name != MAX_JOBS}
    after = [*running, unit.charge]
    return all(forests.used(tree, node, after, name) <= node.min.get(name, 0) for name in judged)


def slow_share(tree, node, unit, running):
    after = [*running, unit.charge]
    share = max(
        (
            Fraction(max(0, forests.used(tree, node, after, name) - node.min.get(name, 0)))
            / max(tree.ceiling(node.parent, name), 1)
            for name, amount in unit.charge.amounts.items()
            if amount and (name in node.min or name != MAX_JOBS)
        ),
        default=Fraction(0),
    )
    return by_weight(share, node) if share else 0.0
