"""Pages of long lists, as a stock kubectl asks for them and as a program does."""

import pytest
from django.utils import timezone

from fleet.kube.resources import CONFIG_MAPS
from jobs.models import Dependent
from tests.support.kubectl import client_of, served

pytestmark = pytest.mark.django_db(transaction=True)
COUNT = 1100
NAMES = [f"object-{i:04}" for i in range(COUNT)]


@pytest.fixture
def ada(transactional_db, admin, tmp_path):
    rows = [
        Dependent(kind="ConfigMap", namespace="default", name=name, created_at=timezone.now(), resource_version=1,
                  manifest={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})
        for name in NAMES
    ]  # fmt: skip
    Dependent.objects.bulk_create(rows)
    with served(tmp_path) as kubectl:
        yield kubectl.as_user("ada")


def test_it_gives_the_later_pages_of_a_table_more_rows_than_kubectl_asks_for(ada):
    done = ada.tries("get", "configmaps", "--no-headers", "-v=6")
    assert [line.split()[0] for line in done.stdout.splitlines()] == NAMES
    assert done.stderr.count("limit=500") == 2


def test_it_keeps_to_the_limit_of_whoever_reads_objects(ada):
    pages = list(client_of(ada.file).pages(CONFIG_MAPS.path("default"), {"limit": "500"}))
    assert [len(page["items"]) for page in pages] == [500, 500, 100]
