"""What a test has committed is gone after it, and what follows from the models stays."""

import pytest
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.models import Model

from tests.support import emptying
from tests.support.books import a_cluster, apply, cycle
from tests.support.people import person
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)


def rows() -> dict[type[Model], int]:
    models = connection.introspection.installed_models(connection.introspection.table_names())
    return {model: model._default_manager.count() for model in models if model._default_manager.exists()}


def test_it_leaves_content_types_and_permissions_alone() -> None:
    kept = rows()
    assert set(kept) == {ContentType, Permission}
    person("ada", ("Viewer", "default")).user_permissions.add(Permission.objects.first())
    a_cluster()
    apply(pytorch_job("llama"))
    assert cycle() == 1
    assert len(rows()) > 10
    emptying.empty(connection)
    assert rows() == kept
