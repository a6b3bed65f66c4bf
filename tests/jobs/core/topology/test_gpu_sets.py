"""The best GPUs of a node, on the DGX-1 with V100s: the figures of NVIDIA's link matrix and of the sets it has."""

from collections import Counter
from itertools import combinations
from statistics import mean

import pytest

from jobs.core.topology.gpu_sets import Board, packed_cycles
from tests.jobs.core.topology.builders import BOARD

ALL = tuple(range(8))


def rings(count: int) -> Counter[float]:
    return Counter(BOARD.ring(gpus) for gpus in combinations(ALL, count))


def test_its_pairs_have_two_links_one_or_none() -> None:
    assert rings(2) == {40.0: 8, 20.0: 8, 6.0: 12}


def test_few_threes_have_a_ring() -> None:
    assert rings(3)[40.0] == 8 and rings(3).total() == 56


def test_two_quads_are_fast_and_six_are_half_as_fast() -> None:
    found = {gpus: BOARD.ring(gpus) for gpus in combinations(ALL, 4)}
    assert {gpus for gpus, gbs in found.items() if gbs == 80} == {(0, 1, 2, 3), (4, 5, 6, 7)}
    half = {(0, 1, 4, 5), (0, 2, 4, 6), (0, 3, 4, 7), (1, 2, 5, 6), (1, 3, 5, 7), (2, 3, 6, 7)}
    assert {gpus for gpus, gbs in found.items() if gbs == 40} == half
    assert sum(gbs < 20 for gbs in found.values()) == 62


def test_the_whole_board_has_three_rings() -> None:
    assert BOARD.ring(ALL) == 120


def test_it_goes_over_pcie_where_no_links_make_a_ring() -> None:
    assert BOARD.ring((0, 5)) == 6
    pascal = Board(((0, 0), (0, 0)), sockets=(0, 0))
    assert pascal.ring((0, 1)) == 10


@pytest.mark.parametrize(
    ("count", "free", "best", "first", "random"),
    [(4, 5, 31.1, 13.7, 11.0), (4, 6, 57.1, 23.1, 11.0), (4, 7, 80.0, 43.0, 11.0), (2, 4, 39.4, 25.0, 19.7)],
)
def test_it_beats_first_fit_and_chance(count: int, free: int, best: float, first: float, random: float) -> None:
    sets = list(combinations(ALL, free))
    chosen = [BOARD.best(left, count) for left in sets]
    assert mean(BOARD.ring(gpus) for gpus in chosen if gpus) == pytest.approx(best, abs=0.06)
    assert mean(BOARD.ring(left[:count]) for left in sets) == pytest.approx(first, abs=0.2)
    assert mean(BOARD.ring(gpus) for left in sets for gpus in combinations(left, count)) == pytest.approx(
        random, abs=0.06
    )


def test_it_leaves_the_best_pairs_behind() -> None:
    taken = BOARD.best(ALL, 2)
    assert taken is not None and BOARD.ring(taken) == 40
    assert BOARD.split(tuple(gpu for gpu in ALL if gpu not in taken), 2) == 120


def test_it_takes_the_first_behind_a_switch_where_all_are_alike() -> None:
    flat = Board(tuple(tuple(12 * (a != b) for b in range(16)) for a in range(16)), sockets=(0,) * 8 + (1,) * 8)
    assert flat.best(range(3, 16), 4) == (3, 4, 5, 6)
    assert flat.best((6, 7, 8, 9, 10), 3) == (8, 9, 10)
    assert packed_cycles(flat.links) == 90


def test_it_leaves_the_choice_to_the_member_where_looking_at_all_takes_too_long() -> None:
    uneven = Board(tuple(tuple(int(abs(a - b) == 1) for b in range(16)) for a in range(16)), sockets=(0,) * 16)
    assert uneven.best(range(16), 10) is None and uneven.best(range(16), 2) == (0, 1)


def test_it_has_none_when_too_few_are_free() -> None:
    assert BOARD.best((1, 2), 3) is None and BOARD.best((), 0) is None
