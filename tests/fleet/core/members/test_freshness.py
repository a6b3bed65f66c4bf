"""What counts as seen: the time in which the picture was current, and no other."""

from datetime import UTC, datetime, timedelta

from fleet.core.members.freshness import Freshness

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def test_it_counts_from_the_event_while_somebody_watches():
    assert Freshness(ago(1000), ago(1)).observed_for(ago(30), NOW) == timedelta(seconds=30)


def test_it_counts_nothing_of_the_time_before_the_watch_began_again():
    assert Freshness(ago(3), ago(1)).observed_for(ago(660), NOW) == timedelta(seconds=3)


def test_it_decides_nothing_later_than_an_old_picture():
    old = Freshness(ago(1000), ago(300))
    assert old.as_of(NOW) == ago(300)
    assert old.observed_for(ago(310), NOW) == timedelta(seconds=10)
    assert old.observed_for(ago(5), NOW) == timedelta()


def test_it_is_stale_only_when_it_was_current_once_and_no_more():
    most = timedelta(seconds=20)
    assert Freshness(ago(1000), ago(21)).is_stale(NOW, most)
    assert not Freshness(ago(1000), ago(19)).is_stale(NOW, most)
    assert not Freshness().is_stale(NOW, most)


def test_it_judges_by_the_clock_where_nobody_keeps_account():
    assert Freshness().observed_for(ago(30), NOW) == timedelta(seconds=30)
