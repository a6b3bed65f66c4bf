"""Many rows written with one statement."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, transaction

from fleet.db import bulk
from fleet.models import AuditEntry, Cluster, Event, Node

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, tzinfo=UTC)


def said(count: int) -> list[Event]:
    made = [Event(regarding_kind="Job", regarding_name=f"j{i}", first_at=NOW, last_at=NOW) for i in range(count)]
    return Event.objects.bulk_create(made)


def test_it_stores_numbers_texts_and_times_of_many_rows_in_one_statement(django_assert_num_queries):
    rows = said(50)
    for i, row in enumerate(rows):
        row.count, row.message, row.last_at = i, f"'{i}' %s é", NOW + timedelta(seconds=i, microseconds=i)
    with django_assert_num_queries(1):
        bulk.update(rows, ["count", "message", "last_at"])
    found = Event.objects.order_by("pk").values_list("count", "message", "last_at")
    assert list(found) == [(row.count, row.message, row.last_at) for row in rows]


def test_it_touches_no_other_column_and_no_other_row():
    one, other = said(2)
    one.count, one.reason = 7, "not asked for"
    bulk.update([one], ["count"])
    assert list(Event.objects.order_by("pk").values_list("count", "reason")) == [(7, ""), (1, "")]
    other.refresh_from_db()
    assert other.count == 1


@pytest.mark.parametrize("first", [None, {"a": 1}])
def test_it_stores_objects_and_their_absence(first):
    given = [first, {"b": [1, "é", None]}, None]
    rows = [AuditEntry(at=NOW, actor="ada", door="REST", verb="update", outcome="Done") for _ in given]
    AuditEntry.objects.bulk_create(rows)
    for row, after in zip(rows, given, strict=True):
        row.after = after
    bulk.update(rows, ["after"])
    assert list(AuditEntry.objects.order_by("pk").values_list("after", flat=True)) == given
    assert AuditEntry.objects.filter(after__isnull=True).count() == given.count(None)


def test_it_stores_what_a_row_points_to_and_that_it_points_nowhere():
    cluster = Cluster.objects.create(name="north", state_since=NOW, joined_at=NOW, labels={"a": "b"})
    nodes = [cluster.nodes.create(name=f"n{i}", ready=True, allocatable={}) for i in range(2)]
    for node in nodes:
        node.ready, node.allocatable = False, {"cpu": 5}
    bulk.update(nodes, ["ready", "allocatable", "cluster"])
    assert list(cluster.nodes.values_list("ready", "allocatable")) == [(False, {"cpu": 5})] * 2


def test_it_does_nothing_for_no_rows(django_assert_num_queries):
    with django_assert_num_queries(0):
        bulk.update([], ["count"])


def test_it_leaves_alone_what_is_gone():
    rows = said(2)
    Event.objects.filter(pk=rows[0].pk).delete()
    rows[0].count = rows[1].count = 3
    bulk.update(rows, ["count"])
    assert list(Event.objects.values_list("count", flat=True)) == [3]


def fresh(count: int) -> list[AuditEntry]:
    odd = "a\t\\N\n'é"
    made = [
        AuditEntry(at=NOW + timedelta(microseconds=i), actor=f"{i}{odd}", door="REST", verb="update")
        for i in range(count)
    ]
    for i, row in enumerate(made):
        row.outcome, row.after = "Done", {"n": [i, odd, None]} if i else None
    return made


@pytest.mark.parametrize("count", [1, 20, 21, 700])
def test_it_adds_new_rows_with_keys_that_ascend_in_their_order(count):
    rows = bulk.insert(fresh(count))
    keys = [row.pk for row in rows]
    assert keys == sorted(set(keys)) and None not in keys
    found = AuditEntry.objects.order_by("pk").values_list("pk", "at", "actor", "after")
    assert list(found) == [(row.pk, row.at, row.actor, row.after) for row in rows]
    assert AuditEntry.objects.filter(after__isnull=True).count() == sum(row.after is None for row in rows)


def test_it_adds_rows_after_rows_that_were_added_one_by_one():
    Cluster.objects.create(name="one", state_since=NOW, joined_at=NOW)
    made = bulk.insert(
        [Cluster(name=f"c{i}", state_since=NOW, joined_at=NOW, access={"token": "t"}) for i in range(30)]
    )
    last = Cluster.objects.create(name="last", state_since=NOW, joined_at=NOW)
    assert last.pk > made[-1].pk and Cluster.objects.get(name="c7").access == {"token": "t"}
    assert Cluster.objects.get(name="c7").uid == made[7].uid
    made[7].region = "changed"
    made[7].save()
    assert Cluster.objects.count() == 32


@pytest.mark.parametrize("count", [5, 50])
def test_it_adds_rows_without_telling_their_keys_where_nobody_asks(count):
    fields = ("at", "actor", "door", "verb", "outcome", "after")
    bulk.store(AuditEntry, [{each: getattr(row, each) for each in fields} for row in fresh(count)], keyless=True)
    assert (
        AuditEntry.objects.count() == count and AuditEntry.objects.filter(after={"n": [3, "a\t\\N\n'é", None]}).exists()
    )
    AuditEntry.objects.create(at=NOW, actor="next", door="REST", verb="update", outcome="Done")


def test_it_adds_all_rows_or_none():
    with pytest.raises(IntegrityError), transaction.atomic():
        bulk.insert([Cluster(name=f"c{i % 29}", state_since=NOW, joined_at=NOW) for i in range(30)])
    assert not Cluster.objects.exists()


def test_it_adds_nothing_for_no_rows(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert bulk.insert([]) == []


@pytest.mark.parametrize("count", [0, 1, 20, 21, 700])
def test_it_stores_rows_told_as_values_with_their_defaults_and_returns_their_keys(count):
    odd = "a\t\\N\n'é"
    told = [
        {"at": NOW, "actor": f"{i}{odd}", "door": "REST", "verb": "update", "outcome": "Done", "after": {"n": [i, odd]}}
        for i in range(count)
    ]
    keys = bulk.store(AuditEntry, told)
    assert len(keys) == count and list(keys) == sorted(set(keys))
    found = AuditEntry.objects.order_by("pk").values_list("pk", "at", "actor", "after", "namespace", "before")
    assert list(found) == [
        (key, NOW, row["actor"], row["after"], "", None) for key, row in zip(keys, told, strict=True)
    ]


@pytest.mark.parametrize("count", [2, 30])
def test_it_stores_each_row_with_a_default_of_its_own_and_what_it_points_to(count):
    bulk.store(Cluster, [{"name": f"c{i}", "state_since": NOW, "joined_at": NOW} for i in range(count)], keyless=True)
    assert len(set(Cluster.objects.values_list("uid", flat=True))) == count
    north = Cluster.objects.get(name="c0")
    bulk.store(
        Node, [{"cluster_id": north.pk, "name": f"n{i}", "ready": True, "allocatable": {}} for i in range(count)]
    )
    assert north.nodes.filter(ready=True, labels={}).count() == count


@pytest.mark.parametrize("count", [1, 3, 700])
def test_it_stores_rows_that_are_new_and_updates_those_that_are_there(count, django_assert_num_queries):
    cluster = Cluster.objects.create(name="north", state_since=NOW, joined_at=NOW)

    def rows(ready):
        nodes = [Node(cluster=cluster, name=f"n{i}", ready=ready, labels={"é": f"{i}'"}) for i in range(count)]
        return [*nodes, Node(cluster=cluster, name=f"new-{ready}", address="10.0.0.1", taints=[{"key": "a"}])]

    for ready in (True, False):
        with django_assert_num_queries(1 if count < 500 else 2):
            bulk.upsert(rows(ready), ["cluster", "name"], ["ready", "labels"])
        assert set(cluster.nodes.filter(name__startswith="n0").values_list("ready", flat=True)) == {ready}
    assert cluster.nodes.count() == count + 2
    assert cluster.nodes.get(name="n0").labels == {"é": "0'"}
    assert cluster.nodes.get(name="new-True").address == "10.0.0.1"


def test_it_stores_no_rows_without_a_statement(django_assert_num_queries):
    with django_assert_num_queries(0):
        bulk.upsert([], ["cluster", "name"], ["ready"])
        assert bulk.store(Event, []) == []


def test_it_stores_a_few_rows_with_the_defaults_of_what_is_not_said():
    first = {"regarding_kind": "Job", "regarding_name": "a", "first_at": NOW, "last_at": NOW}
    keys = bulk.store(Event, [first, {**first, "regarding_name": "b"}])
    rows = Event.objects.order_by("pk")
    assert [(row.pk, row.regarding_name, row.count) for row in rows] == [(keys[0], "a", 1), (keys[1], "b", 1)]
    assert rows[0].uid != rows[1].uid
