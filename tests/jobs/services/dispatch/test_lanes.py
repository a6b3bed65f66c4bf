"""Threads of a worker among members: each has its share, all slow ones together have one, and nothing that waits is lost."""

from jobs.services.dispatch.lanes import BATCH, SLOW_S, Lanes

QUICK, SLOW = SLOW_S / 2, SLOW_S * 2
NORTH, SOUTH, WEST = 1, 2, 3


def enter(lanes, member, *sends, ends=(), is_suspect=False):
    return lanes.enter(member, ends=ends, sends=sends, is_suspect=is_suspect)


def test_a_member_holds_no_more_threads_than_its_lane_has():
    lanes = Lanes(2)
    assert [enter(lanes, NORTH, pk) for pk in range(4)] == [True, True, False, False]
    assert enter(lanes, SOUTH, 9)


def test_what_found_the_lane_full_is_handed_out_once_a_thread_leaves_it():
    lanes = Lanes(1)
    enter(lanes, NORTH, 1)
    enter(lanes, NORTH, 2)
    enter(lanes, NORTH, 2, 3)
    assert lanes.leave(NORTH, QUICK) == [2, 3]
    assert enter(lanes, NORTH, 2) and lanes.leave(NORTH, QUICK) == []


def test_all_slow_members_share_one_lane():
    lanes = Lanes(2)
    for member in (NORTH, SOUTH, WEST):
        enter(lanes, member)
        lanes.leave(member, SLOW)
    assert [enter(lanes, member, member) for member in (NORTH, SOUTH, WEST)] == [True, True, False]
    assert lanes.leave(NORTH, SLOW) == [WEST]


def test_a_member_that_fails_its_health_checks_is_slow_before_it_was_tried():
    lanes = Lanes(1)
    assert enter(lanes, NORTH, 1, is_suspect=True)
    assert not enter(lanes, SOUTH, 2, is_suspect=True)
    assert enter(lanes, WEST, 3)


def test_a_member_that_answers_quickly_again_has_a_lane_of_its_own():
    lanes = Lanes(1)
    enter(lanes, NORTH, is_suspect=True)
    lanes.leave(NORTH, QUICK)
    assert enter(lanes, SOUTH, is_suspect=True) and enter(lanes, NORTH)


def test_a_thread_that_had_nothing_to_do_says_nothing_about_the_member():
    lanes = Lanes(1)
    enter(lanes, NORTH, is_suspect=True)
    lanes.leave(NORTH, None)
    assert enter(lanes, SOUTH, is_suspect=True) and not enter(lanes, NORTH)


def test_removals_and_sends_take_turns():
    lanes = Lanes(1)
    enter(lanes, NORTH)
    enter(lanes, NORTH, *range(100, 120), ends=range(20))
    assert lanes.leave(NORTH, QUICK) == [0, 100, 1, 101, 2, 102, 3, 103]


def test_members_that_wait_take_turns():
    lanes = Lanes(1)
    enter(lanes, NORTH, is_suspect=True)
    enter(lanes, SOUTH, *range(20), is_suspect=True)
    enter(lanes, WEST, *range(100, 120), is_suspect=True)
    handed = []
    for _ in range(4):
        handed.append(lanes.leave(NORTH, SLOW))
        enter(lanes, NORTH)
    assert [batch[0] for batch in handed] == [0, 100, BATCH, 100 + BATCH]


def test_a_worker_of_few_threads_keeps_half_of_them_for_others():
    lanes = Lanes(4)
    lanes.limit(2)
    assert [enter(lanes, NORTH) for _ in range(3)] == [True, True, False]
    lanes.limit(0)
    assert enter(lanes, SOUTH) and not enter(lanes, SOUTH)
