"""Requests to one member: a burst at once, then no more than so many a second, however many threads send them."""

from fleet.member.pacing import TokenBucket


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_it_lets_a_burst_pass_and_then_spaces_requests_evenly():
    bucket = TokenBucket(qps=2, burst=3, clock=Clock())
    assert [bucket.take() for _ in range(5)] == [0, 0, 0, 0.5, 1.0]


def test_it_saves_up_no_more_than_a_burst():
    clock = Clock()
    bucket = TokenBucket(qps=2, burst=3, clock=clock)
    for _ in range(3):
        bucket.take()
    clock.now += 3600
    assert [bucket.take() for _ in range(4)] == [0, 0, 0, 0.5]


def test_a_clock_that_jumps_back_stops_nothing():
    clock = Clock()
    bucket = TokenBucket(qps=2, burst=1, clock=clock)
    bucket.take()
    clock.now -= 3600
    assert bucket.take() == 0.5
