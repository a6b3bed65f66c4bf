"""The journal is compacted under an open watch: whoever missed something is told so, and finds it again."""

import threading

import pytest
from django.db import transaction
from django.utils import timezone
from kubernetes import client, config
from kubernetes.informer import SharedInformer

from fleet.changes import journal
from fleet.kube.resources import CONFIG_MAPS
from fleet.member.errors import MemberError
from jobs.models import Dependent
from jobs.services.submission import manifests, submit
from jobs.services.submission.changes import actions
from tests.fleet.kubeapi.builders import until
from tests.support.kubectl import client_of, served

pytestmark = pytest.mark.django_db(transaction=True)


def config_map(name: str, value: str = "1") -> str:
    return f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{n: '{value}'}}}}"


def apply(*texts: str) -> None:
    submit.apply(manifests.parse("\n---\n".join(texts).encode()), by="test", now=timezone.now())


@transaction.atomic
def change_and_forget() -> None:
    """At once, so that no reader comes between: of these changes only the last is remembered."""
    apply(config_map("made"), config_map("kept", "2"))
    actions.delete_dependent(Dependent.objects.get(name="lost"), by="test", now=timezone.now())
    apply(config_map("last"))
    journal.compact(1)


NOW = {"kept": "2", "last": "1", "made": "1"}


@pytest.fixture
def ada(transactional_db, admin, tmp_path):
    apply(config_map("kept"), config_map("lost"))
    with served(tmp_path) as kubectl:
        yield kubectl.as_user("ada")


def test_an_open_watch_is_told_that_changes_are_forgotten(ada):
    member, refusals, told = client_of(ada.file), [], []

    def watch() -> None:
        try:
            for event in member.watch(CONFIG_MAPS.path("default"), resource_version="", timeout_s=120):
                told.append(event.object["metadata"]["name"])
        except MemberError as e:
            refusals.append(e)

    watching = threading.Thread(target=watch)
    watching.start()
    until(lambda: told == ["kept", "lost"])
    change_and_forget()
    watching.join(60)
    assert [each.status for each in refusals] == [410] and "too old resource version" in refusals[0].message


def test_an_informer_finds_what_it_missed(ada):
    api = config.new_client_from_config(str(ada.file))
    informer = SharedInformer(client.CoreV1Api(api).list_namespaced_config_map, namespace="default")
    informer.start()
    until(lambda: len(informer.cache.list()) == 2)
    change_and_forget()
    until(lambda: {each.metadata.name: each.data["n"] for each in informer.cache.list()} == NOW)
    apply(config_map("later"))
    until(lambda: len(informer.cache.list()) == 4)
    informer.stop()


def test_kubectl_says_so_and_begins_anew_when_it_is_asked_again(ada):
    command = ("get", "configmaps", "-w", "--no-headers", "-o", "name")
    with ada.running(*command) as watching:
        assert {watching.stdout.readline() for _ in range(2)} == {"configmap/kept\n", "configmap/lost\n"}
        change_and_forget()
        watching.wait(120)
        assert "lost" not in watching.stdout.read()
    with ada.running(*command) as watching:
        assert [watching.stdout.readline().strip() for _ in range(3)] == [f"configmap/{name}" for name in NOW]


def test_a_watch_that_missed_nothing_goes_on(ada):
    member, told = client_of(ada.file), []

    def watch() -> None:
        for event in member.watch(CONFIG_MAPS.path("default"), resource_version="", timeout_s=120):
            told.append(event.object["metadata"]["name"])
            if told[-1] == "last":
                return

    watching = threading.Thread(target=watch)
    watching.start()
    until(lambda: len(told) == 2)
    for name in ("a", "b"):
        apply(config_map(name))
        until(lambda name=name: told[-1] == name)
        journal.compact(1)
    apply(config_map("last"))
    watching.join(60)
    assert told == ["kept", "lost", "a", "b", "last"]
