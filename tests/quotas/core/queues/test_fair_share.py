"""Who comes first, in a queue and across queues, and what the policies of a queue do with a job that does not fit.

F = koord-queue elastic_quota_tree_test, B = its schedulingqueuev2_test, P = the definition of its policies; numbers as in
docs/proposals/0003-reclaim.md.
"""

from quotas.core.accounts.ledger import Charge
from quotas.core.queues.admission import Refused
from quotas.core.queues.fair_share import FairShareIterator, plan_admission
from tests.quotas.core.builders import cpu, ledger, names, quota, unit


def test_it_takes_priority_then_time_then_name_case_15_16_17():
    units = [unit("d", after_s=1), unit("c"), unit("b"), unit("a", priority=20, after_s=9), unit("e", priority=10)]
    made = plan_admission(ledger(10, quota("a")), units)
    assert names(made.admitted) == ["a", "e", "b", "c", "d"]  # B15, B16, B17


def test_it_follows_a_changed_priority_case_18():
    units = [unit("x", priority=30), unit("y", priority=20), unit("z", priority=25)]
    assert names(plan_admission(ledger(10, quota("a")), units).admitted) == ["x", "z", "y"]  # B18


def test_it_passes_over_what_does_not_fit_case_23_priority():
    found = ledger(10, quota("a", 0, 4))
    made = plan_admission(
        found, [unit("big", cores=3), unit("head", cores=2, after_s=1), unit("tail", cores=1, after_s=2)]
    )
    assert names(made.admitted) == ["big", "tail"]  # P23, Priority
    [(waiting, reason)] = made.waits
    assert (waiting.name, reason.path, reason.used) == ("head", "root/a", 3000)


def test_it_blocks_one_queue_and_lets_the_others_go_on_case_23_block():
    found = ledger(10, quota("a", 0, 4, attributes={"queue-policy": "Block"}), quota("b"))
    units = [
        unit("head", cores=3),
        unit("big", cores=2, after_s=1),
        unit("third", after_s=2),
        unit("fourth", after_s=3),
    ]
    made = plan_admission(found, [*units, unit("other", "b", after_s=9)])
    assert names(made.admitted) == ["other", "head"]  # P23, Block
    told = {waiting.name: reason for waiting, reason in made.waits}
    assert isinstance(told["big"], Refused)
    assert told["fourth"].message == "is number 3 in queue root/a, which waits for big"


def test_it_serves_a_queue_below_its_min_before_all_priorities():
    found = ledger(10, quota("a", 0, 10), quota("b", 2, 10))
    made = plan_admission(found, [unit("rich", priority=9), unit("promised", "b", 2), unit("borrows", "b", after_s=1)])
    assert names(made.admitted) == ["promised", "rich", "borrows"]


def test_it_does_not_hide_one_within_its_min_behind_one_that_never_fits():
    found = ledger(10, quota("a", 4, 10), quota("b", 0, 10))
    waiting = [unit("huge", "a", 11, priority=9), unit("promised", "a", 4), unit("b1", "b", 6), unit("b2", "b", 4)]
    assert names(plan_admission(found, waiting).admitted) == ["promised", "b1"]


def test_it_does_not_hide_one_within_its_min_behind_one_that_would_borrow():
    found = ledger(10, quota("a", 4, 10), quota("b", 0, 10), quota("c", 0, 10))
    found.charge(unit("runs", "c", 4).charge)
    waiting = [unit("big", "a", 8, priority=9), unit("promised", "a", 4), unit("b1", "b", 3), unit("b2", "b", 2)]
    assert names(plan_admission(found, waiting).admitted) == ["promised", "b2"]


def test_it_asks_who_is_before_in_a_queue_first_even_if_that_one_would_borrow():
    found = ledger(10, quota("a", 4, 10), quota("b", 0, 10))
    waiting = [unit("big", "a", 8, priority=9), unit("promised", "a", 4), unit("b1", "b", 3), unit("b2", "b", 2)]
    assert names(plan_admission(found, waiting).admitted) == ["big", "b2"]


def test_it_asks_who_stays_within_min_before_one_that_would_borrow_whoever_is_behind_that_one():
    found = ledger(10, quota("a", 4, 10), quota("b", 6, 10))
    waiting = [unit("big", "a", 8, priority=9), unit("promised", "a", 4), unit("theirs", "b", 6)]
    assert names(plan_admission(found, waiting).admitted) == ["theirs", "promised"]


def test_it_gives_what_others_behind_were_promised_before_it_lends_it_to_who_would_borrow_least():
    found = ledger(20, quota("a", 4, 20), quota("b", 4, 20))
    waiting = [unit("a1", "a", 9, priority=9), unit("a2", "a", 4), unit("b1", "b", 8), unit("b2", "b", 4)]
    assert names(plan_admission(found, waiting).admitted)[:2] == ["a2", "b1"]


def test_it_lends_to_whoever_has_borrowed_least():
    found = ledger(9, quota("a"), quota("b"))
    made = plan_admission(
        found, [unit(f"a{i}", "a") for i in range(9)] + [unit(f"b{i}", "b", after_s=60) for i in range(9)]
    )
    assert names(made.admitted)[:6] == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_it_lends_by_weight():
    found = ledger(8, quota("a", attributes={"weight": "3"}), quota("b"))
    made = plan_admission(found, [unit(f"a{i}", "a") for i in range(8)] + [unit(f"b{i}", "b") for i in range(8)])
    assert sum(name.startswith("a") for name in names(made.admitted)) == 6


def test_it_compares_teams_before_their_queues():
    found = ledger(4, quota("big", None, None, *[quota(f"q{i}") for i in range(3)]), quota("small"))
    many = [unit(f"big{i}{j}", f"big/q{i}", after_s=j) for i in range(3) for j in range(4)]
    made = plan_admission(found, many + [unit(f"small{j}", "small", after_s=99) for j in range(4)])
    assert sum(name.startswith("small") for name in names(made.admitted)) == 2


def test_it_takes_turns_where_the_policy_is_round():
    found = ledger(20, quota("a"), quota("b"), attributes={"queue-policy": "Round"})
    made = plan_admission(
        found, [unit(f"a{i}", "a", 4) for i in range(3)] + [unit(f"b{i}", "b", 1, after_s=9) for i in range(3)]
    )
    assert names(made.admitted) == ["a0", "b0", "b1", "b2", "a1", "a2"]


def test_it_takes_turns_by_size_and_weight():
    """Of 64 GPUs, jobs of 8 and jobs of 1 get 32 each; with weights 3 and 1 they get 48 and 16."""
    sizes = {"a": 8, "b": 1}
    waiting = [unit(f"{leaf}{i}", leaf, size, after_s=i) for leaf, size in sizes.items() for i in range(64)]
    for weights, expected in (((1, 1), (32, 32)), ((3, 1), (48, 16)), ((0.5, 0.5), (32, 32))):
        leaves = [quota(leaf, attributes={"weight": str(w)}) for leaf, w in zip("ab", weights, strict=True)]
        made = plan_admission(ledger(64, *leaves, attributes={"queue-policy": "Round"}), waiting)
        used = [sum(sizes[leaf] for each in made.admitted if each.name.startswith(leaf)) for leaf in "ab"]
        assert used == list(expected)


def test_it_lets_weight_0_borrow_only_what_others_leave():
    found = ledger(10, quota("a", 2, 10, attributes={"weight": "0"}), quota("b"))
    waiting = [unit(f"a{i}", "a") for i in range(10)] + [unit(f"b{i}", "b", after_s=9) for i in range(6)]
    made = plan_admission(found, waiting)
    assert sum(each.name.startswith("b") for each in made.admitted) == 6
    assert sum(each.name.startswith("a") for each in made.admitted) == 4


def test_it_shares_by_fractions_of_a_weight():
    found = ledger(9, quota("a", attributes={"weight": "0.5"}), quota("b"))
    made = plan_admission(found, [unit(f"{leaf}{i}", leaf, after_s=i) for leaf in "ab" for i in range(9)])
    assert sum(each.name.startswith("a") for each in made.admitted) == 3


def test_it_goes_on_taking_turns_in_the_next_pass():
    found = ledger(20, quota("a"), quota("b"), attributes={"queue-policy": "Round"})
    found.charge(Charge("root/a", {**cpu(1), "kube-queue/max-jobs": 1}))
    assert FairShareIterator(found, [unit("a1", "a", priority=9), unit("b1", "b")]).next().name == "b1"


def test_it_offers_the_same_job_until_it_is_told():
    iterator = FairShareIterator(ledger(9, quota("a")), [unit("x"), unit("y", after_s=1)])
    first = iterator.next()
    assert iterator.next() is first
    iterator.passed(first)
    assert iterator.next().name == "y"


def test_it_offers_no_job_like_one_that_no_cluster_holds():
    units = [unit("x"), unit("x2", after_s=1), unit("x3", after_s=2), unit("y", after_s=3)]
    iterator = FairShareIterator(ledger(9, quota("a")), units)
    iterator.passed(iterator.next(), ["x", "x2", "x3"])
    assert iterator.next().name == "y"
    iterator.passed(iterator.next())
    assert iterator.next() is None and iterator.waits == []


def test_it_is_done_when_nobody_waits():
    assert FairShareIterator(ledger(9, quota("a")), []).next() is None
    assert plan_admission(ledger(9, namespaces=["default"]), []).admitted == []


def test_it_releases_exactly_one_job_at_a_time_under_max_jobs_of_one():
    found = ledger(9, quota("a", {}, {"kube-queue/max-jobs": 1}))
    units = [unit(name) for name in "xyz"]
    assert names(plan_admission(found, units).admitted) == ["x"]
    found.release(units[0].charge)
    assert names(plan_admission(found, units[1:]).admitted) == ["y"]


def test_it_charges_a_unit_once_though_it_is_named_ten_times_case_5_and_19():
    found = ledger(99, quota("a"))
    made = plan_admission(found, [unit("x", cores=2)] * 10)  # F5, reserved 10 times at once; B19, a duplicate
    assert (names(made.admitted), made.waits, found.used("root/a")["cpu"]) == (["x"], [], 2000)
