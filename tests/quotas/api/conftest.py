"""A first quota tree, and a lead who may edit one leaf of it."""

import pytest

from fleet.models import Grant
from quotas.models import QuotaGrant
from tests.quotas.api.builders import START, TREE
from tests.support.people import client_of, person


@pytest.fixture
def tree(as_admin):
    assert as_admin.put(TREE, {"manifest": START, "comment": "the first"}, format="json").status_code == 200


@pytest.fixture
def as_lead(db):
    user = person("lea", (Grant.Role.VIEWER, "vision"))
    QuotaGrant.objects.create(user=user, path="root/b")
    return client_of(user)
