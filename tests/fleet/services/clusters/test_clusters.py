"""Joining, renewing, changing and detaching clusters, against members on real ports."""

from dataclasses import replace

import pytest
import yaml
from django.utils import timezone

from fleet.changes import signals
from fleet.errors import Conflict, InvalidInput, Unavailable
from fleet.models import Cluster, Event, JournalEntry
from fleet.services.clusters import clusters
from tests.support.members import join, kubeconfig

pytestmark = pytest.mark.django_db(transaction=True)


def now():
    return timezone.now()


def with_token(server, token):
    config = server.kubeconfig()
    config["users"][0]["user"]["token"] = token
    return yaml.safe_dump(config)


def test_it_joins_a_member_and_knows_what_it_serves(north):
    row = join(north)
    row.refresh_from_db()
    assert (row.state, row.version) == ("Ready", "v1.31.0")
    assert row.serves("v1", "Pod")
    assert row.member_uid
    assert {p["allowed"] for p in row.permissions} == {True}
    assert JournalEntry.objects.filter(kind="Cluster", action="added", object_uid=str(row.uid)).count() == 1
    assert "alice joined north" in Event.objects.get(regarding_uid=str(row.uid)).message


def test_impersonation_is_turned_on_and_off(north):
    row = join(north)
    assert not row.impersonation
    assert clusters.set_impersonation(row, True, by="alice", now=now()).impersonation
    assert not clusters.set_impersonation(row, False, by="alice", now=now()).impersonation
    told = list(Event.objects.filter(reason="ImpersonationChanged").order_by("id").values_list("message", flat=True))
    assert told == ["alice turned impersonation on", "alice turned impersonation off"]


def test_it_keeps_the_credentials_unreadable_in_the_database(north):
    from django.db import connection

    join(north)
    with connection.cursor() as cursor:
        cursor.execute("SELECT access FROM fleet_cluster")
        assert north.token not in cursor.fetchone()[0]


def test_it_refuses_a_name_that_is_taken(north, members):
    join(north)
    with pytest.raises(Conflict, match="north has joined already"):
        join(members("south"), "north")


def test_it_refuses_the_same_member_under_another_name(north):
    join(north)
    with pytest.raises(Conflict, match="under the name north"):
        join(north, "twin")


def test_it_refuses_a_token_the_member_does_not_know(north):
    with pytest.raises(InvalidInput, match="refuses the credentials"):
        clusters.join("north", with_token(north, "expired"), by="alice", now=now())
    assert not Cluster.objects.exists()


def test_it_refuses_a_member_that_does_not_answer(north):
    north.faults.away = True
    with pytest.raises(Unavailable, match="does not answer"):
        join(north)
    assert not Cluster.objects.exists()


def test_it_refuses_private_addresses_where_the_operator_forbids_them(north, settings):
    settings.CONVOY_PRIVATE_MEMBERS = False
    with pytest.raises(InvalidInput, match="private address"):
        join(north)


@pytest.mark.parametrize("name", ["North", "a/b", "", "-a", "a" * 64])
def test_it_refuses_a_name_that_is_no_dns_label(name):
    with pytest.raises(InvalidInput, match="name: must be"):
        clusters.join(name, "{}", by="alice", now=now())


def test_it_renews_the_credentials_of_the_same_member_only(north, members):
    row = join(north)
    with pytest.raises(Conflict, match="leads to another cluster"):
        clusters.renew(row, kubeconfig(members("south")), by="alice", now=now())
    renewed = clusters.renew(row, kubeconfig(north), by="bob", now=now())
    assert renewed.resource_version > row.resource_version


def test_it_takes_no_credentials_that_cannot_be_shown_to_lead_to_the_same_member(north, members, monkeypatch):
    row = join(north)
    probe = clusters.probe
    monkeypatch.setattr(clusters, "probe", lambda access: replace(probe(access), member_uid=""))
    with pytest.raises(Conflict, match="may not read the namespace kube-system"):
        clusters.renew(row, kubeconfig(members("south")), by="alice", now=now())
    assert Cluster.objects.get().server == row.server


def test_it_takes_no_credentials_of_another_member_for_one_whose_identity_is_not_known(north, members):
    row, south = join(north), members("south")
    join(south)
    Cluster.objects.filter(pk=row.pk).update(member_uid="")
    row.refresh_from_db()
    with pytest.raises(Conflict, match="member already, under the name south"):
        clusters.renew(row, kubeconfig(south), by="alice", now=now())


def test_it_cordons_and_uncordons_once(north):
    row = join(north)
    assert clusters.cordon(row, True, by="alice", now=now()).cordoned
    clusters.cordon(row, True, by="alice", now=now())
    assert JournalEntry.objects.filter(kind="Cluster", action="modified").count() == 1


HEARTBEAT = {"key": "cluster.karmada.io/not-ready", "value": "", "effect": "NoExecute", "timeAdded": "x"}


def keys(row):
    return [taint["key"] for taint in row.taints]


def test_it_drains_once_between_the_taints_of_people_and_those_of_the_heartbeat(north):
    row = join(north)
    Cluster.objects.update(taints=[{"key": "spot", "effect": "NoSchedule"}, HEARTBEAT])
    for _ in range(2):
        drained = clusters.drain(row, by="alice", now=now())
    assert keys(drained) == ["spot", "convoy.dev/drained", HEARTBEAT["key"]]
    assert (drained.drained, drained.cordoned) == (True, False)
    assert JournalEntry.objects.filter(kind="Cluster", action="modified").count() == 1
    assert Event.objects.get(reason="ClusterDrained").message == "alice drained the cluster"


def test_it_reopens_what_is_drained_or_cordoned_and_leaves_the_other_taints(north):
    row = join(north)
    Cluster.objects.update(taints=[{"key": "spot", "effect": "NoSchedule"}, HEARTBEAT], cordoned=True)
    clusters.drain(row, by="alice", now=now())
    for _ in range(2):
        open_ = clusters.reopen(row, by="bob", now=now())
    assert (open_.drained, open_.cordoned, keys(open_)) == (False, False, ["spot", HEARTBEAT["key"]])
    assert JournalEntry.objects.filter(kind="Cluster", action="modified").count() == 2
    clusters.drain(row, by="alice", now=now())
    assert not clusters.reopen(row, by="bob", now=now()).drained


def test_it_takes_the_drain_of_somebody_else_for_its_own(north):
    row = join(north)
    by_hand = {"key": "convoy.dev/drained", "value": "repair", "effect": "NoExecute"}
    first = clusters.set_taints(row, [by_hand], by="alice", now=now()).taints
    assert clusters.drain(row, by="bob", now=now()).taints == first
    assert clusters.reopen(row, by="bob", now=now()).taints == []


def test_it_keeps_the_time_of_a_taint_that_stays(north):
    row = join(north)
    taint = {"key": "spot", "value": "", "effect": "NoExecute"}
    first = clusters.set_taints(row, [taint], by="alice", now=now()).taints
    assert clusters.set_taints(row, [taint], by="alice", now=now()).taints == first


@pytest.mark.parametrize(
    ("taint", "field"),
    [
        ({"key": "a b", "effect": "NoExecute"}, "taints[0].key"),
        ({"key": "a", "effect": "Never"}, "taints[0].effect"),
        ({"key": "a", "value": "b c", "effect": "NoExecute"}, "taints[0].value"),
        ({"key": "cluster.karmada.io/not-ready", "effect": "NoExecute"}, "taints[0].key"),
    ],
)
def test_it_refuses_a_taint_it_cannot_keep(north, taint, field):
    with pytest.raises(InvalidInput) as refused:
        clusters.set_taints(join(north), [taint], by="alice", now=now())
    assert [fault.field for fault in refused.value.faults] == [field]


def test_it_lets_a_cluster_go_unless_somebody_objects(north):
    row = join(north)

    def objects(**_):
        return "2 jobs run there"

    signals.detaching.connect(objects)
    with pytest.raises(Conflict, match="2 jobs run there"):
        clusters.detach(row, by="alice", now=now())
    clusters.detach(row, by="alice", now=now(), force=True)
    signals.detaching.disconnect(objects)
    assert not Cluster.objects.exists()
    assert JournalEntry.objects.filter(kind="Cluster", action="deleted").count() == 1
