"""Notices of pods become reclaims of nodes: which was taken back when, which of its pods saved, and what the others lost."""

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from jobs.runtime.reclaims import NoticeOfPod, Outcome, of_notices

T = datetime(2026, 1, 1, tzinfo=UTC)


def s(seconds: float) -> datetime:
    return T + timedelta(seconds=seconds)


def notice(pod="llama-worker-1", node="n1", at=0.0, heard=None, left=None, step=None, began=-600.0, **fields):
    times = {"heard_at": None if heard is None else s(heard), "left_at": None if left is None else s(left)}
    about = {"job": 1, "attempt": 1, "cause": "aws-spot", "gpus": 8, "began": None if began is None else s(began)}
    return NoticeOfPod(pod=pod, node=node, at=s(at), deadline=s(at + 120), saved_step=step, **times, **about | fields)


@pytest.mark.parametrize(
    ("row", "outcome", "lost"),
    [
        (notice(heard=1, left=60), Outcome.SAVED, 0),
        (notice(left=60, step=40), Outcome.SAVED, 0),
        (notice(step=40), Outcome.SAVED, 0),
        (notice(heard=1, left=121), Outcome.LOST, 8 * 721),
        (notice(left=30), Outcome.LOST, 8 * 630),
        (notice(), Outcome.LOST, 8 * 720),
        (notice(began=None), Outcome.LOST, 0),
        (notice(gpus=0), Outcome.LOST, 0),
    ],
)
def test_it_says_what_became_of_a_pod_and_what_it_lost(row, outcome, lost):
    [reclaim] = of_notices([row], s(1000))
    assert [(pod.outcome, pod.lost_gpu_s) for pod in reclaim.pods] == [(outcome, lost)]
    assert reclaim.lost_gpu_minutes == lost / 60


def test_it_waits_until_the_deadline_for_a_pod_that_has_not_left():
    assert of_notices([notice(heard=1)], s(119))[0].count(Outcome.LEAVING) == 1
    assert of_notices([notice(heard=1)], s(120))[0].count(Outcome.LOST) == 1


def test_a_node_is_reclaimed_once_for_all_notices_until_the_deadline_and_again_later():
    rows = [notice("a-0", at=0, job=1), notice("b-0", at=3, job=2), notice("c-0", "n2", at=3), notice("a-0", at=900)]
    reclaims = of_notices(reversed(rows), s(2000))
    assert [(each.node, each.at, len(each.pods)) for each in reclaims] == [
        ("n1", s(900), 1), ("n2", s(3), 1), ("n1", s(0), 2),
    ]  # fmt: skip


def test_what_is_lost_begins_at_the_last_save_of_the_attempt():
    saved = notice("llama-worker-0", "n2", at=0, heard=1, left=60)
    again = notice(at=300, left=330)
    other = notice("gpt-worker-0", "n3", at=300, left=330, job=2)
    lost = {each.node: each.lost_gpu_minutes for each in of_notices([saved, again, other], s(2000))}
    assert lost == {"n2": 0, "n1": 8 * 270 / 60, "n3": 8 * 930 / 60}


def test_what_one_pod_saves_in_answer_to_a_notice_is_the_work_of_all_that_got_it():
    rows = [notice("llama-worker-0", "n2", left=30), notice("llama-worker-1", "n2", heard=1, left=60)]
    [reclaim] = of_notices(rows, s(2000))
    assert (reclaim.count(Outcome.LOST), reclaim.lost_gpu_minutes) == (1, 0)


def test_a_notice_without_end_is_of_no_other_reclaim_an_hour_later():
    endless = dataclasses.replace(notice("forged-0", job=2), deadline=s(1e9))
    later = [notice("a-0", at=3600), notice("a-0", at=3601)]
    assert [len(each.pods) for each in of_notices([endless, *later], s(9000))] == [1, 2]


def test_a_pod_is_leaving_until_its_deadline_by_the_clock_of_the_fleet():
    behind = notice(heard=1, began=0, until=s(720))
    assert of_notices([behind], s(719))[0].count(Outcome.LEAVING) == 1
    [reclaim] = of_notices([behind], s(720))
    assert (reclaim.count(Outcome.LOST), reclaim.lost_gpu_minutes) == (1, 8 * 720 / 60)
    ahead = notice(heard=1, until=s(-480))
    assert of_notices([ahead], s(-480))[0].count(Outcome.LOST) == 1


def test_as_many_notices_of_one_attempt_as_are_kept_cost_no_comparison_of_each_with_each():
    comparisons = [0]

    class Moment(datetime):
        def __le__(self, other):
            comparisons[0] += 1
            return super().__le__(other)

        def __lt__(self, other):
            comparisons[0] += 1
            return super().__lt__(other)

        def __gt__(self, other):
            comparisons[0] += 1
            return super().__gt__(other)

    def moment(seconds):
        at = s(seconds)
        return Moment(at.year, at.month, at.day, at.hour, at.minute, at.second, tzinfo=UTC)

    rows = [notice(f"w-{i}", f"n{i}", at=i, left=i + 60, heard=i if i % 2 else None) for i in range(1000)]
    rows = [dataclasses.replace(row, left_at=moment(i + 60)) for i, row in enumerate(rows)]
    assert len(of_notices(rows, s(9000))) == 1000
    assert comparisons[0] < 50_000


def test_without_notices_there_are_no_reclaims():
    assert of_notices([], T) == []
