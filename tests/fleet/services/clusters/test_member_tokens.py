"""Tokens that the fleet asks members for: requested, renewed in time, replaced when they end, and shown."""

from contextlib import contextmanager
from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.core.settings import MemberSettings
from fleet.kube.resources import NAMESPACES, SERVICE_ACCOUNTS
from fleet.kubeapi.objects.clusters import Clusters
from fleet.member.client import MemberClient
from fleet.member.errors import MemberError
from fleet.models import Cluster, Event, MemberCredentials
from fleet.services.clusters import clusters, member_tokens
from fleet.services.members import member_clients

pytestmark = pytest.mark.django_db(transaction=True)
ACCOUNT = {"metadata": {"name": "convoy", "namespace": "convoy-system"}}


@contextmanager
def admin_of(member):
    client = MemberClient(clusters.parse_kubeconfig(yaml.safe_dump(member.kubeconfig())))
    try:
        yield client
    finally:
        client.close()


def issued(member, seconds=3600) -> str:
    """A token of the service account that the fleet has in this member."""
    with admin_of(member) as client:
        for path, body in (
            (NAMESPACES.path(), {"metadata": {"name": "convoy-system"}}),
            (SERVICE_ACCOUNTS.path("convoy-system"), ACCOUNT),
        ):
            try:
                client.create(path, body)
            except MemberError as e:
                assert e.status == 409
        body = {"spec": {"expirationSeconds": seconds}}
        return client.create(SERVICE_ACCOUNTS.path("convoy-system", "convoy", "token"), body)["status"]["token"]


def kubeconfig(member, token: str) -> str:
    document = member.kubeconfig()
    document["users"][0]["user"] = {"token": token}
    return yaml.safe_dump(document)


@pytest.fixture
def joined(north):
    return clusters.join("north", kubeconfig(north, issued(north)), by="test", now=timezone.now())


def tend(now=None) -> None:
    for thread in member_tokens.start(now or timezone.now()):
        thread.join(60)


def known() -> MemberCredentials:
    return MemberCredentials.objects.select_related("cluster").get()


def works() -> bool:
    client = member_clients.connect(member_clients.access_of(Cluster.objects.get()))
    try:
        return bool(client.list(NAMESPACES.path())["items"])
    except MemberError:
        return False
    finally:
        client.close()


def condition() -> tuple[str, str]:
    status = Clusters().render(Clusters().rows().get())["status"]
    [shown] = [each for each in status["conditions"] if each["type"] == "ShortLivedCredentials"]
    return shown["status"], shown["reason"]


def test_it_uses_a_token_of_an_hour_in_the_place_of_what_it_was_joined_with(joined):
    assert condition() == ("False", "NotAsked")
    now = timezone.now()
    tend(now)
    row = known()
    assert row.cluster.access["token"] != joined.access["token"] and works()
    assert row.joined == joined.access
    assert timedelta(minutes=59) < row.expires_at - now < timedelta(minutes=61)
    assert condition() == ("True", "TokenRequested")
    assert Event.objects.filter(reason="TokenRequested").count() == 1


def test_it_renews_at_half_of_the_life_and_not_before(joined):
    now = timezone.now()
    tend(now)
    first = known().cluster.access["token"]
    tend(now + timedelta(minutes=28))
    assert known().cluster.access["token"] == first
    tend(now + timedelta(minutes=31))
    assert known().cluster.access["token"] != first and known().joined == joined.access and works()
    assert Event.objects.filter(reason="TokenRequested").count() == 1


def test_it_asks_with_what_it_was_joined_with_when_the_token_has_ended(joined):
    tend()
    cluster = Cluster.objects.get()
    cluster.access = {**cluster.access, "token": "ended"}
    cluster.save(update_fields=["access"])
    later = timezone.now() + timedelta(hours=3)
    MemberCredentials.objects.update(expires_at=later - timedelta(hours=2))
    tend(later)
    assert works() and condition() == ("True", "TokenRequested")


def test_it_asks_anew_when_a_member_refuses_a_token_that_has_not_ended(joined):
    tend()
    cluster = Cluster.objects.get()
    cluster.access, cluster.failing_since = {**cluster.access, "token": "refused"}, timezone.now()
    cluster.save(update_fields=["access", "failing_since"])
    tend(timezone.now() + timedelta(minutes=1))
    assert works()


def test_it_falls_back_and_says_so_when_the_member_issues_none(joined, north):
    tend()
    member_token = Cluster.objects.get().access["token"]
    with admin_of(north) as client:
        client.delete(SERVICE_ACCOUNTS.path("convoy-system", "convoy"))
    later = timezone.now() + timedelta(minutes=31)
    tend(later)
    assert condition() == ("True", "TokenRequestRefused"), "the token works until it ends"
    assert Cluster.objects.get().access["token"] == member_token
    MemberCredentials.objects.update(expires_at=later)
    tend(later + timedelta(minutes=11))
    assert condition() == ("False", "TokenRequestRefused") and Cluster.objects.get().access == joined.access
    assert Event.objects.filter(reason="TokenRequestRefused", type="Warning").count() == 1


def test_it_leaves_accounts_alone_that_are_no_service_accounts(north):
    row = clusters.join("north", yaml.safe_dump(north.kubeconfig()), by="test", now=timezone.now())
    tend()
    assert condition() == ("False", "NotAServiceAccount") and Cluster.objects.get().access == row.access


def test_it_forgets_former_credentials_that_were_renewed_by_hand(joined, north):
    tend()
    row, outcome = known(), member_tokens.ask(known(), timezone.now())
    fresh = kubeconfig(north, issued(north, 7200))
    renewed = clusters.renew(Cluster.objects.get(), fresh, by="ada", now=timezone.now())
    member_tokens.write(row, outcome, timezone.now())
    assert Cluster.objects.get().access == renewed.access and not MemberCredentials.objects.exists()
    tend()
    assert known().joined == renewed.access


def test_it_puts_back_what_was_joined_with_when_it_is_turned_off(joined, settings):
    tend()
    settings.CONVOY_MEMBERS = MemberSettings(token_s=0)
    tend()
    assert Cluster.objects.get().access == joined.access and condition() == ("False", "TurnedOff")


def turn(client, on: bool):
    return client.put("/api/v1/clusters/north/short-lived-tokens/", {"on": on}, format="json")


def test_an_admin_turns_them_off_and_on_for_one_member(joined, as_admin):
    tend()
    shown = as_admin.get("/api/v1/clusters/north/").json()["credentials"]
    assert shown["on"] and shown["short_lived"] and shown["reason"] == "TokenRequested" and shown["expires_at"]
    answer = turn(as_admin, False)
    assert answer.status_code == 200 and Cluster.objects.get().access == joined.access and works()
    shown = answer.json()["credentials"]
    assert not shown["on"] and not shown["short_lived"] and shown["reason"] == "TurnedOff"
    assert condition() == ("False", "TurnedOff")
    tend(timezone.now() + timedelta(hours=2))
    assert Cluster.objects.get().access == joined.access, "nobody asks for a token now"
    assert turn(as_admin, True).json()["credentials"]["reason"] == "NotAsked"
    tend()
    assert condition() == ("True", "TokenRequested")
    changes = Event.objects.filter(reason="ShortLivedTokensChanged").order_by("id").values_list("message", flat=True)
    assert [each.partition(" ")[2] for each in changes] == [
        "turned short-lived tokens off",
        "turned short-lived tokens on",
    ]


def test_a_second_time_changes_nothing_but_asks_again_where_the_member_issued_none(joined, as_admin, north):
    with admin_of(north) as client:
        client.delete(SERVICE_ACCOUNTS.path("convoy-system", "convoy"))
    tend()
    assert known().due_at is not None
    assert turn(as_admin, True).status_code == 200 and known().due_at is None
    assert not Event.objects.filter(reason="ShortLivedTokensChanged").exists()
    assert turn(as_admin, False).status_code == turn(as_admin, False).status_code == 200
    assert Event.objects.filter(reason="ShortLivedTokensChanged").count() == 1


def test_they_stay_on_where_the_member_no_longer_accepts_what_it_was_joined_with(joined, as_admin):
    tend()
    row = known()
    row.joined = {**row.joined, "token": "ended"}
    row.save()
    used = Cluster.objects.get().access
    answer = turn(as_admin, False)
    assert answer.status_code == 409 and "convoy cluster renew north" in answer.content.decode()
    assert Cluster.objects.get().access == used and condition() == ("True", "TokenRequested")


def test_a_token_that_arrives_after_they_were_turned_off_is_not_used(joined, as_admin):
    MemberCredentials.objects.create(cluster=joined)
    row, outcome = known(), member_tokens.ask(known(), timezone.now())
    turn(as_admin, False)
    member_tokens.write(row, outcome, timezone.now())
    assert outcome.token and Cluster.objects.get().access == joined.access


def test_they_stay_off_when_credentials_are_renewed_by_hand(joined, as_admin, north):
    turn(as_admin, False)
    clusters.renew(Cluster.objects.get(), kubeconfig(north, issued(north, 7200)), by="ada", now=timezone.now())
    tend()
    assert condition() == ("False", "TurnedOff") and not MemberCredentials.objects.exists()


def test_no_answer_shows_a_token(joined, as_admin):
    tend()
    row = known()
    for path in ("/api/v1/clusters/", "/api/v1/clusters/north/"):
        content = as_admin.get(path).content.decode()
        assert row.joined["token"] not in content and row.cluster.access["token"] not in content


def test_it_leaves_a_member_alone_that_does_not_answer(joined, north):
    tend()
    before = Cluster.objects.get().access
    north.stop()
    tend(timezone.now() + timedelta(minutes=31))
    assert Cluster.objects.get().access == before and condition() == ("True", "TokenRequested")


@pytest.mark.parametrize("seconds", [1, 599, 2**32 + 1])
def test_a_simulated_member_issues_no_token_for_a_time_that_a_real_one_refuses(north, seconds):
    with pytest.raises(MemberError, match="less than 10 minutes") as refused:
        issued(north, seconds)
    assert refused.value.status == 422
