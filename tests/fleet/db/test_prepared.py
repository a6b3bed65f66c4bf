"""Statements that are built once and asked again and again."""

import gc
import weakref
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import F

from fleet.db import fencing, prepared
from fleet.db.prepared import JSON, KEY, TEXT, TIME, UID
from fleet.models import Cluster, Event, Hold, Node, Token
from tests.support.people import person

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 8, 30, 0, 123456, tzinfo=UTC)


@pytest.fixture
def clusters():
    times = dict.fromkeys(("state_since", "joined_at"), NOW)
    return [Cluster.objects.create(name=name, labels={"n": name}, access={"server": name}, **times) for name in "ab"]


def said(count):
    rows = [Event(regarding_kind="Job", regarding_name=f"j{i}", first_at=NOW, last_at=NOW) for i in range(count)]
    return Event.objects.bulk_create(rows)


def test_it_answers_as_django_does_for_each_value_it_is_given(clusters):
    query = prepared.Rows(
        lambda param: Cluster.objects.filter(name=param("name", TEXT)).values_list("pk", "uid", "labels")
    )
    for row in (*clusters, *clusters):
        assert query.values(name=row.name) == [(row.pk, row.uid, row.labels)]
    assert query.values(name="nowhere") == []


def test_it_is_built_once(clusters):
    built = []

    def build(param):
        built.append(1)
        return Cluster.objects.filter(name=param("name", TEXT)).values_list("pk")

    query = prepared.Rows(build)
    for name in "abab":
        query.values(name=name)
    assert len(built) == 1


def test_it_keeps_nothing_of_the_connection_it_was_built_with(clusters):
    """A thread that ends without closing its own would otherwise leave it open for ever."""
    query = prepared.Rows(lambda param: Node.objects.select_related("cluster").filter(name=param("name", TEXT)))
    clusters[0].nodes.create(name="n1", ready=True)
    of_a_thread = connections.create_connection(DEFAULT_DB_ALIAS)
    text, held = query._text({"name": "n1"}, of_a_thread), weakref.ref(of_a_thread)
    del of_a_thread
    gc.collect()
    assert held() is None and text.converters, "the times of a cluster are converted"
    [node] = query.objects(name="n1")
    assert (node.cluster.name, node.cluster.joined_at) == ("a", NOW)
    assert query._text({"name": "n1"}, connections[DEFAULT_DB_ALIAS]) is text


def test_it_sees_what_was_written_since_it_was_built(clusters):
    query = prepared.Rows(lambda param: Cluster.objects.filter(pk=param("pk", KEY)).values_list("name"))
    assert query.values(pk=clusters[0].pk) == [("a",)]
    Cluster.objects.filter(pk=clusters[0].pk).update(name="z")
    assert query.values(pk=clusters[0].pk) == [("z",)]


def test_it_makes_objects_with_what_they_refer_to_and_leaves_out_what_is_deferred(clusters):
    node = clusters[1].nodes.create(name="n1", ready=True, allocatable={"cpu": 5}, labels={"x": "y"})
    rows = Node.objects.select_related("cluster").defer("labels", "cluster__access")
    query = prepared.Rows(lambda param: rows.filter(name=param("name", TEXT)))
    for _ in range(2):
        (found,) = query.objects(name="n1")
        assert (found.pk, found.ready, found.allocatable, found.cluster.name) == (node.pk, True, {"cpu": 5}, "b")
        assert found.get_deferred_fields() == {"labels"}
        assert found.cluster.get_deferred_fields() == {"access"}
    assert query.objects(name="n2") == []


def test_it_reads_secrets_and_times(clusters):
    query = prepared.Rows(lambda param: Cluster.objects.filter(joined_at__lte=param("now", TIME)).order_by("name"))
    assert [row.access for row in query.objects(now=NOW)] == [{"server": "a"}, {"server": "b"}]
    assert query.objects(now=NOW - timedelta(microseconds=1)) == []


@pytest.mark.parametrize("count", [0, 1, 2, 20])
def test_it_takes_lists_of_any_length(clusters, count):
    uids = [uuid4() for _ in range(count)]
    holds = [
        Hold(cluster=clusters[0], job_uid=uid, attempt=1, amounts={}, nodes=[], pods=1, made_at=NOW) for uid in uids
    ]
    Hold.objects.bulk_create(holds)
    query = prepared.Rows(lambda param: Hold.objects.filter(job_uid__in=param("uids", UID)).values_list("job_uid"))
    for _ in range(2):
        assert {uid for (uid,) in query.values(uids=uids)} == set(uids)
    assert len(query.values(uids=uids[:1])) == min(count, 1)


def test_it_keeps_one_text_for_lists_of_all_lengths():
    rows = [row.pk for row in said(70)]
    query = prepared.Rows(lambda param: Event.objects.filter(pk__in=param("pks", KEY)).values_list("pk"))
    for count in (*range(70, 0, -1), *range(1, 71)):
        assert {pk for (pk,) in query.values(pks=rows[:count])} == set(rows[:count])
    assert query.values(pks=list(range(-50_000, 0))) == [] and query.values(pks=[]) == []
    assert len(query._texts) == 2  # the other of an empty list


VALUES = {
    "regarding_name": (TEXT, ["it's", 'a "quote"', "\\", "é 文", "{1,2}", "", "%s"]),
    "last_at": (TIME, [NOW, NOW + timedelta(microseconds=1)]),
    "count": (KEY, [0, 1, 2**31 - 1]),
    "uid": (UID, [uuid4(), uuid4()]),
}


@pytest.mark.parametrize("name", VALUES)
def test_it_takes_lists_of_values_of_every_type(name):
    field, values = VALUES[name]
    times = {"first_at": NOW, "last_at": NOW}
    for value in values:
        Event.objects.create(regarding_kind="Job", **{**times, "regarding_name": "j", name: value})
    query = prepared.Rows(
        lambda param: Event.objects.filter(**{f"{name}__in": param("values", field)}).values_list(name)
    )
    for value in values:
        assert query.values(values=[value]) == [(value,)]
    assert sorted(query.values(values=[*values, None, values[0]])) == sorted((value,) for value in values)


def test_it_updates_the_rows_that_match_and_says_how_many():
    rows = said(3)
    later = NOW + timedelta(seconds=1)
    update = prepared.Update(
        lambda param: (
            Event.objects.filter(pk__in=param("pks", KEY), last_at__lt=param("at", TIME)),
            {"count": F("count") + 1, "last_at": param("at", TIME)},
        )
    )
    assert update.run(pks=[rows[0].pk, rows[1].pk], at=later) == 2
    assert update.run(pks=[rows[0].pk, rows[1].pk], at=later) == 0
    assert update.run(pks=[], at=later) == 0
    counts = Event.objects.order_by("pk").values_list("count", "last_at")
    assert list(counts) == [(2, later), (2, later), (1, NOW)]


def test_none_is_null_in_a_document_too():
    """By itself the field writes the JSON value null, which no ``IS NULL`` finds."""
    token = Token.objects.create(user=person("ada"), digest="d", created_at=NOW, scope={"verbs": ["get"]})
    update = prepared.Update(lambda param: (Token.objects.filter(pk=param("pk", KEY)), {"scope": param("scope", JSON)}))
    assert update.run(pk=token.pk, scope=None) == 1
    assert Token.objects.filter(scope__isnull=True).exists()


def test_a_fenced_writer_writes_nothing_by_it_once_its_lease_is_lost():
    (row,) = said(1)
    update = prepared.Update(lambda param: (Event.objects.filter(pk=param("pk", KEY)), {"count": 9}))

    class Lost(Exception):
        pass

    def check():
        raise Lost

    with pytest.raises(Lost), fencing.fenced(check):
        update.run(pk=row.pk)
    row.refresh_from_db()
    assert row.count == 1


def test_it_says_what_a_column_has_after_an_update(clusters):
    update = prepared.Update(
        lambda param: (Cluster.objects.filter(name=param("name", TEXT)), {"labels": param("labels", JSON)})
    )
    assert update.returning("name", name="a", labels={"n": "new"}) == ["a"]
    assert update.returning("name", name="nowhere", labels={}) == []
    clusters[0].refresh_from_db()
    assert clusters[0].labels == {"n": "new"}


def test_a_distinct_query_whose_order_would_add_columns_is_refused():
    distinct = Event.objects.values_list("reason").distinct()
    with pytest.raises(ValueError, match="end it with order_by"):
        prepared.Rows(lambda _: distinct).values()
    assert prepared.Rows(lambda _: distinct.order_by()).values() == []
