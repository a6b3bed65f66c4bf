"""Team leads over REST: named and unnamed by those who may change the whole tree, once, and written down."""

import pytest

from fleet.models import AuditEntry, Grant
from quotas.models import QuotaGrant
from tests.support.between import after_each_look_at
from tests.support.people import client_of, person

pytestmark = pytest.mark.django_db
LEADS = "/api/v1/leads/"


@pytest.fixture
def lea(db):
    return person("lea")


@pytest.fixture
def quinn(db):
    return client_of(person("quinn", (Grant.Role.QUOTA_ADMIN, "")))


def name(client, user="lea", path="root/vision"):
    return client.post(LEADS, {"user": user, "path": path}, format="json")


def test_a_lead_is_named_once_listed_and_unnamed(quinn, lea):
    made = name(quinn)
    assert (made.status_code, name(quinn).data["id"]) == (201, made.data["id"])
    assert quinn.get(f"{LEADS}?user__username=lea").data["results"] == [made.data]
    assert quinn.delete(f"{LEADS}{made.data['id']}/").status_code == 204
    assert quinn.delete(f"{LEADS}{made.data['id']}/").status_code == 404
    lines = (
        AuditEntry.objects.filter(kind="QuotaGrant", outcome="done").order_by("pk").values_list("actor", "verb", "name")
    )
    assert list(lines) == [("quinn", "grant", "lea: below root/vision"), ("quinn", "revoke", "lea: below root/vision")]


@pytest.mark.django_db(transaction=True)
def test_of_two_requests_at_once_that_name_the_same_lead_both_get_it(quinn, lea):
    def the_other():
        assert name(quinn).status_code == 201

    with after_each_look_at("quotas_quotagrant", the_other):
        made = name(quinn)
    assert (made.status_code, made.data["id"]) == (201, QuotaGrant.objects.get().pk)
    assert AuditEntry.objects.filter(kind="QuotaGrant", outcome="done").count() == 1


@pytest.mark.parametrize(
    ("user", "path", "status"),
    [("lea", "vision", 422), ("lea", "root/a b", 422), ("lea", "root/\x00", 400), ("zoe", "root", 404)],
)
def test_it_refuses_leads_that_cannot_be(quinn, lea, user, path, status):
    assert name(quinn, user, path).status_code == status
    assert not QuotaGrant.objects.exists()


def test_a_lead_names_no_other(lea):
    QuotaGrant.objects.create(user=lea, path="root")
    person("mo")
    assert name(client_of(lea), "mo").status_code == 403
    assert client_of(lea).delete(f"{LEADS}{QuotaGrant.objects.get().pk}/").status_code == 403


@pytest.mark.parametrize("role", ["editor", "viewer"])
def test_others_name_nobody(lea, role):
    client = client_of(person("eve", (role, "")))
    assert name(client).status_code == 403
    assert client.get(LEADS).status_code == 403
