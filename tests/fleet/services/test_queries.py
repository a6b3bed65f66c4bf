"""Capacity summed for the doors, in a bounded number of queries."""

import uuid

import pytest
from django.utils import timezone

from fleet import queries
from fleet.models import Cluster, Hold, Node

pytestmark = pytest.mark.django_db


def cluster(name):
    now = timezone.now()
    return Cluster.objects.create(name=name, server="https://x", access={}, state_since=now, joined_at=now)


def node(of, name, has, asked, ready=True):
    amounts = {"allocatable": {"gpu": has}, "requested": {"gpu": asked} if asked else {}}
    Node.objects.create(cluster=of, name=name, ready=ready, **amounts)


def hold(of, amount, released_at=None):
    made = {"job_uid": uuid.uuid4(), "attempt": 1, "pods": 1, "made_at": timezone.now()}
    Hold.objects.create(cluster=of, amounts={"gpu": amount}, released_at=released_at, **made)


def test_it_subtracts_what_is_asked_and_held_from_usable_nodes():
    north = cluster("north")
    node(north, "n1", 8, 3)
    node(north, "n2", 8, 0, ready=False)
    hold(north, 2)
    hold(north, 4, released_at=timezone.now())
    capacity = queries.capacities([north.pk])[north.pk]
    assert capacity.resources == {"gpu": {"allocatable": 8, "requested": 3, "held": 2, "free": 3}}
    assert (capacity.nodes, capacity.usable_nodes) == (2, 1)


def test_it_never_shows_less_than_nothing():
    north = cluster("north")
    node(north, "n1", 4, 8)
    node(north, "n2", 4, 0)
    hold(north, 9)
    assert queries.capacities([north.pk])[north.pk].resources["gpu"]["free"] == 0


def test_it_asks_the_same_number_of_questions_for_many_clusters(django_assert_num_queries):
    rows = [cluster(f"c{i}") for i in range(5)]
    for row in rows:
        node(row, "n1", 8, 0)
    with django_assert_num_queries(2):
        assert len(queries.capacities(row.pk for row in rows)) == 5
