"""Pages of long lists, as a stock kubectl asks for them and as a program does."""

import json
from functools import partial

import pytest
from django.utils import timezone

from fleet.kube.resources import CONFIG_MAPS
from fleet.kube.server import lists
from fleet.kube.server.request import Request
from fleet.kubeapi.history import Journal
from jobs.kubeapi.kinds import kinds
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


def raw(ada, query: str = "") -> dict:
    return json.loads(ada.tries("get", "--raw", f"{CONFIG_MAPS.path('default')}{query}").stdout)


def test_it_gives_everything_to_an_informer_that_states_no_limit(ada):
    found = raw(ada)
    assert [each["metadata"]["name"] for each in found["items"]] == NAMES
    assert (found["kind"], found["metadata"].keys()) == ("ConfigMapList", {"resourceVersion"})
    assert ada.tries("get", "configmaps", "--chunk-size=0", "--no-headers").stdout.count("\n") == COUNT


def test_what_is_behind_a_continue_token_needs_no_limit_either(ada):
    token = raw(ada, "?limit=10")["metadata"]["continue"]
    names = [each["metadata"]["name"] for each in raw(ada, f"?continue={token}")["items"]]
    assert names == NAMES[10:]


def test_a_selector_looks_through_the_whole_of_a_list_without_a_limit(ada):
    assert len(raw(ada, "?fieldSelector=metadata.name!=object-0001")["items"]) == COUNT - 1
    assert raw(ada, "?labelSelector=none=1")["items"] == []


def test_a_page_is_never_longer_than_a_server_gives(ada):
    Dependent.objects.bulk_create(
        Dependent(kind="ConfigMap", namespace="default", name=f"z-{i}", created_at=timezone.now(), resource_version=1,
                  manifest={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"z-{i}", "namespace": "default"}})
        for i in range(1000)
    )  # fmt: skip
    found = raw(ada, "?limit=100000")
    assert len(found["items"]) == 500 and found["metadata"]["continue"]


def test_no_more_than_a_piece_of_a_long_list_is_kept_at_once(ada, monkeypatch):
    made = []
    monkeypatch.setattr(lists, "encoded", lambda value: made.append(value) or b"{}")
    kind = next(each for each in kinds() if each.name == "ConfigMap")
    request = Request("GET", CONFIG_MAPS.path("default"), {}, {})
    answer = lists.answer(kind, Journal(), None, request, partial(lists.document, kind))
    pieces = answer.pieces()
    next(pieces), next(pieces)
    assert len(made) == 1 + 500
    assert sum(1 for _ in pieces) == 3 and len(made) == 1 + COUNT


def test_a_collection_without_a_limit_is_deleted_whole(ada):
    ada.tries("delete", "--raw", CONFIG_MAPS.path("default"))
    assert not Dependent.objects.exists()
