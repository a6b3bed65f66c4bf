"""The system page asks what reads many rows once in a while, however many people look at it."""

import threading

import pytest

from fleet.api.http.recent_checks import FRESH_S, RecentChecks


class Scan:
    """A check that counts how often it is asked, and can be held up."""

    def __init__(self) -> None:
        self.asked, self.problem = 0, ""
        self.may_end, self.began = threading.Event(), threading.Event()
        self.may_end.set()

    def __call__(self) -> str:
        self.asked += 1
        self.began.set()
        assert self.may_end.wait(60)
        return self.problem


@pytest.fixture
def scan() -> Scan:
    return Scan()


def test_it_asks_again_only_when_the_answer_is_old(scan):
    time = [100.0]
    checks = RecentChecks(lambda: time[0])
    assert [checks.run(scan) for _ in range(5)] == [{"ok": True}] * 5
    scan.problem, time[0] = "1 job cannot be read", 100.0 + FRESH_S - 0.1
    assert checks.run(scan) == {"ok": True} and scan.asked == 1
    time[0] += 0.2
    assert checks.run(scan) == {"ok": False, "detail": "1 job cannot be read"} and scan.asked == 2


def test_it_gives_the_former_answer_while_another_request_asks(scan):
    time = [0.0]
    checks = RecentChecks(lambda: time[0])
    checks.run(scan)
    scan.may_end.clear()
    scan.began.clear()
    time[0] = FRESH_S
    slow = threading.Thread(target=checks.run, args=[scan])
    slow.start()
    assert scan.began.wait(60)
    assert checks.run(scan) == {"ok": True} and scan.asked == 2
    scan.may_end.set()
    slow.join()


def test_the_first_requests_ask_together_once(scan):
    checks, answers = RecentChecks(lambda: 0.0), []
    scan.may_end.clear()
    requests = [threading.Thread(target=lambda: answers.append(checks.run(scan))) for _ in range(4)]
    for request in requests:
        request.start()
    scan.may_end.set()
    for request in requests:
        request.join()
    assert answers == [{"ok": True}] * 4 and scan.asked == 1


def test_a_check_that_raises_is_asked_again_and_holds_nobody_up(scan):
    checks = RecentChecks(lambda: 0.0)

    def raises() -> str:
        raise ValueError("unforeseen")

    for _ in range(2):
        with pytest.raises(ValueError, match="unforeseen"):
            checks.run(raises)
