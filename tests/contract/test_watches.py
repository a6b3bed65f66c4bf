"""Watches: order, resumption, selectors, bookmarks, time limits, and what has been forgotten."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest
from kubernetes import watch
from kubernetes.client import CoreV1Api
from kubernetes.informer import ADDED, SharedInformer

from fleet.kube.resources import CONFIG_MAPS, CRDS, Resource
from fleet.member.client import MemberClient
from fleet.member.errors import MemberAway, MemberError, MemberExpired, MemberMissing
from fleet.member.reading import WatchEvent
from tests.contract.target import Target, config_map, definition, served, until

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def version(target: Target, namespace: str) -> str:
    return target.member.get(CONFIG_MAPS.path(namespace))["metadata"]["resourceVersion"]


def heard(target: Target, namespace: str, since: str, *, least: int = 0, **params: str) -> list[WatchEvent]:
    """Everything until the watch ends by itself. Where a busy machine lets its time pass before it sends, it is held again."""
    path, events = CONFIG_MAPS.path(namespace), list[WatchEvent]()
    for timeout_s in (1, 10, 60):
        events = list(target.member.watch(path, resource_version=since, timeout_s=timeout_s, params=params))
        if len(told(events)) >= least:
            break
    return events


def told(events: list[WatchEvent]) -> list[tuple[str, str]]:
    return [(e.type, e.object["metadata"]["name"]) for e in events if e.type != "BOOKMARK"]


def change(target: Target, namespace: str, name: str, labels: dict[str, str | None]) -> None:
    target.member.merge_patch(CONFIG_MAPS.path(namespace, name), {"metadata": {"labels": labels}})


@pytest.mark.usefixtures("bodies")
def test_it_tells_changes_in_order(target: Target, namespace: str) -> None:
    since = version(target, namespace)
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    target.member.create(CONFIG_MAPS.path(namespace), config_map("b"))
    change(target, namespace, "a", {"x": "1"})
    target.member.delete(CONFIG_MAPS.path(namespace, "b"))
    events = heard(target, namespace, since, least=4)
    assert told(events) == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
    versions = [int(e.object["metadata"]["resourceVersion"]) for e in events]
    assert versions == sorted(versions) and versions[0] > int(since)


def test_it_tells_every_change_as_it_comes(target: Target, namespace: str) -> None:
    path, since = CONFIG_MAPS.path(namespace), version(target, namespace)
    with listening(target, path, since) as events:
        for act, expected in (
            (lambda: target.member.create(path, config_map("a")), ("ADDED", "a")),
            (lambda: change(target, namespace, "a", {"x": "1"}), ("MODIFIED", "a")),
            (lambda: target.member.delete(f"{path}/a"), ("DELETED", "a")),
            (lambda: target.member.create(path, config_map("a")), ("ADDED", "a")),
        ):
            seen = len(told(events))
            act()
            until(lambda seen=seen: len(told(events)) > seen)
            assert told(events)[seen:] == [expected]
    versions = [int(e.object["metadata"]["resourceVersion"]) for e in events]
    assert versions == sorted(versions) and versions[0] > int(since)


def test_it_tells_what_comes_into_a_selector_and_leaves_it(target: Target, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace)
    target.member.create(path, config_map("a"))
    since = version(target, namespace)
    target.member.create(path, config_map("b", labels={"go": "yes"}))
    with listening(target, path, since, labelSelector="go=yes") as events:
        until(lambda: bool(told(events)))
        for labels, expected in (
            ({"go": "yes"}, ("ADDED", "a")),
            ({"go": "yes", "x": "1"}, ("MODIFIED", "a")),
            ({"go": None}, ("DELETED", "a")),
        ):
            seen = len(told(events))
            change(target, namespace, "a", labels)
            until(lambda seen=seen: len(told(events)) > seen)
            assert told(events)[seen:] == [expected]


@contextmanager
def listening(target: Target, path: str, since: str, **params: str) -> Iterator[list[WatchEvent]]:
    """What a watch tells, as it tells it; the watch ends with its client."""
    events: list[WatchEvent] = []
    client = MemberClient(target.access)
    watching = client.watch(path, resource_version=since, timeout_s=120, params=params)

    def read() -> None:
        with suppress(MemberAway):  # it was closed
            events.extend(watching)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    yield events
    client.close()
    thread.join(60)


def test_it_resumes_after_the_last_version_seen(target: Target, namespace: str) -> None:
    since = version(target, namespace)
    for name in "abc":
        target.member.create(CONFIG_MAPS.path(namespace), config_map(name))
    first = heard(target, namespace, since, least=1)[0]
    rest = heard(target, namespace, first.object["metadata"]["resourceVersion"], least=2)
    assert told(rest) == [("ADDED", "b"), ("ADDED", "c")]


@pytest.mark.usefixtures("bodies")
def test_it_resumes_after_a_deletion(target: Target, namespace: str) -> None:
    since = version(target, namespace)
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    target.member.delete(CONFIG_MAPS.path(namespace, "a"))
    target.member.create(CONFIG_MAPS.path(namespace), config_map("b"))
    deleted = heard(target, namespace, since, least=2)[1]
    assert told(heard(target, namespace, deleted.object["metadata"]["resourceVersion"], least=1)) == [("ADDED", "b")]


def test_it_begins_with_all_there_is_when_no_version_is_named(target: Target, namespace: str) -> None:
    target.member.create(CONFIG_MAPS.path(namespace), config_map("b"))
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    assert sorted(told(heard(target, namespace, "", least=2))) == [("ADDED", "a"), ("ADDED", "b")]


@pytest.mark.usefixtures("bodies")
def test_it_tells_what_begins_and_ceases_to_match(target: Target, namespace: str) -> None:
    since = version(target, namespace)
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    change(target, namespace, "a", {"go": "yes"})
    change(target, namespace, "a", {"go": "yes", "x": "1"})
    change(target, namespace, "a", {"go": None})
    change(target, namespace, "a", {"x": "2"})
    events = heard(target, namespace, since, least=3, labelSelector="go=yes")
    assert told(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_it_tells_one_object_to_who_asks_for_one(target: Target, namespace: str) -> None:
    since = version(target, namespace)
    for name in "ab":
        target.member.create(CONFIG_MAPS.path(namespace), config_map(name))
    assert told(heard(target, namespace, since, least=1, fieldSelector="metadata.name=b")) == [("ADDED", "b")]


def test_it_keeps_namespaces_apart(target: Target, namespace: str) -> None:
    since = version(target, namespace)
    target.member.create(CONFIG_MAPS.path("default"), config_map(f"of-{namespace}"))
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    assert told(heard(target, namespace, since, least=1)) == [("ADDED", "a")]
    every = heard(target, "", since, least=1, fieldSelector=f"metadata.name=of-{namespace}")
    assert told(every) == [("ADDED", f"of-{namespace}")]


def test_a_short_watch_ends_without_a_bookmark(target: Target, namespace: str) -> None:
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    events = heard(target, namespace, version(target, namespace))
    assert not events


def test_only_the_first_table_of_a_watch_names_its_columns(target: Target, namespace: str) -> None:
    for name in "ab":
        target.member.create(CONFIG_MAPS.path(namespace), config_map(name))
    query = {"watch": "true", "timeoutSeconds": "1", "fieldSelector": "metadata.name!=kube-root-ca.crt"}
    lines = target.text(CONFIG_MAPS.path(namespace), query, Accept=TABLE).splitlines()
    tables = [json.loads(line)["object"] for line in lines]
    assert {table["rows"][0]["object"]["metadata"]["name"] for table in tables} == {"a", "b"}, "in whatever order"
    assert [bool(table["columnDefinitions"]) for table in tables] == [True, False]


def test_it_tells_what_happens_while_it_waits(target: Target, namespace: str) -> None:
    core, watcher = CoreV1Api(target.api), watch.Watch()
    stream = watcher.stream(core.list_namespaced_config_map, namespace, timeout_seconds=120)
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(target.member.create, CONFIG_MAPS.path(namespace), config_map("late"))
        names = (event["object"].metadata.name for event in stream)
        assert next(name for name in names if name == "late")
        made.result()
    watcher.stop()


def young(target: Target) -> Resource:
    """A kind whose changes a real server's cache has not kept from the beginning; a fleet has one history for all."""
    if target.name == "hub":
        return CONFIG_MAPS
    resource, manifest = definition()
    target.member.create(CRDS.path(), manifest)
    until(lambda: served(target, resource))
    return resource


def test_it_has_forgotten_what_was_compacted(target: Target, namespace: str) -> None:
    resource = young(target)
    for name in "abc":
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
        target.member.create(resource.path(namespace), body)
    target.compact()
    with pytest.raises(MemberExpired) as refusal:
        list(target.member.watch(resource.path(namespace), resource_version="1", timeout_s=1))
    assert "too old resource version" in refusal.value.message


def test_it_refuses_a_version_that_is_none(target: Target, namespace: str) -> None:
    with pytest.raises(MemberError):
        heard(target, namespace, "yesterday")


def test_it_watches_nothing_that_is_not_served(target: Target, namespace: str) -> None:
    resource, _ = definition()
    with pytest.raises(MemberMissing):
        list(target.member.watch(resource.path(namespace), resource_version="1", timeout_s=1))


def test_it_feeds_an_informer(target: Target, namespace: str) -> None:
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    core, added = CoreV1Api(target.api), set()
    informer = SharedInformer(core.list_namespaced_config_map, namespace=namespace)
    informer.add_event_handler(ADDED, lambda found: added.add(found.metadata.name))
    informer.start()
    try:
        until(lambda: "a" in added)
        target.member.create(CONFIG_MAPS.path(namespace), config_map("b"))
        until(lambda: "b" in added)
    finally:
        informer.stop()
