"""The judge of promises sees what is to be seen: a wait within min counts, while others borrow and no longer."""

from tests.scale.promises import Ran, longest_broken


def ran(queue: str, amount: int, queued_at: float, placed_at: float, ended_at: float, cohort: str = "c") -> Ran:
    return Ran(queue, cohort, amount, queued_at, placed_at, ended_at)


def test_it_counts_the_wait_within_min_while_another_queue_borrows():
    borrows = ran("b", 30, 0, 0, 500)
    assert longest_broken([borrows, ran("a", 20, 100, 180, 900)], 20) == 80
    assert longest_broken([borrows, ran("a", 20, 100, 700, 900)], 20) == 400, "until the borrower has ended"


def test_it_counts_no_wait_beyond_the_min_nor_beside_queues_within_theirs():
    assert longest_broken([ran("b", 30, 0, 0, 500), ran("a", 21, 100, 400, 900)], 20) == 0
    assert longest_broken([ran("b", 20, 0, 0, 500), ran("a", 20, 100, 400, 900)], 20) == 0
    assert longest_broken([ran("b", 30, 0, 0, 500, "other"), ran("a", 20, 100, 400, 900)], 20) == 0


def test_it_counts_what_the_queue_itself_runs():
    mine = [ran("a", 5, 0, 0, 150), ran("a", 20, 100, 400, 900)]
    assert longest_broken([ran("b", 30, 0, 0, 500), *mine], 20) == 250, "from the end of its own job"


def test_it_joins_the_pieces_of_a_use_that_others_change_meanwhile():
    others = [ran("b", 25, 0, 0, 200), ran("c", 25, 0, 100, 300)]
    assert longest_broken([*others, ran("a", 20, 50, 290, 900)], 20) == 240
