"""``kubectl amc describe``: prints objects of clusters in full, each with its events."""

from __future__ import annotations

import re
from argparse import Namespace as Arguments
from datetime import UTC, datetime
from functools import partial
from typing import Any

from frontend.cli import human
from frontend.cli.amc import get, rows, run
from frontend.cli.amc.discovery import Resource
from frontend.cli.amc.fleet import Member, Object
from frontend.cli.problems import Problem

_HIDDEN = frozenset({"managedFields", "name", "namespace", "labels", "annotations", "selfLink"})
_WORD = re.compile(r"[A-Z]?[^A-Z]+|[A-Z]+(?![^A-Z])")


def describe(arguments: Arguments) -> int:
    kind, names = get.split(arguments.kind, arguments.names)
    this = run.start(arguments)
    params = {"labelSelector": arguments.selector} if arguments.selector else {}
    read = partial(get.read, kind=kind, names=names, namespace=this.namespace, params=params, source=get.objects)

    def query(member: Member) -> rows.Listing:
        listing = read(member)
        for item in listing.items:
            item["_events"] = _events(member, item)
        return listing

    gathered = get.answered(this.gather(query))
    first = True
    for cluster, listing in gathered.answers.items():
        for item in listing.items:
            if not first:
                this.screen.line("\n")
            first = False
            for line in lines(listing.resource, cluster, item):
                this.screen.line(line)
            _print_events(this, item["_events"])
    return get.conclude(this, [gathered], names)


def lines(resource: Resource, cluster: str, item: Object) -> list[str]:
    metadata = item.get("metadata") or {}
    head = {
        "Name": [str(metadata.get("name", ""))],
        **({"Namespace": [str(metadata.get("namespace", ""))]} if resource.namespaced else {}),
        "Cluster": [cluster],
        "From Fleet": ["yes" if rows.ours(metadata) else "no"],
        "Labels": [f"{key}={value}" for key, value in sorted((metadata.get("labels") or {}).items())],
        "Annotations": [f"{key}: {value}" for key, value in sorted((metadata.get("annotations") or {}).items())],
        "API Version": [str(item.get("apiVersion", ""))],
        "Kind": [str(item.get("kind") or resource.kind)],
    }
    width = max(map(len, head)) + 3
    output = []
    for title, values in head.items():
        first, *others = values or [human.NONE]
        output += [f"{title + ':':{width}}{first}", *(" " * width + value for value in others)]
    rest = {key: value for key, value in item.items() if key not in ("apiVersion", "kind", "metadata", "_events")}
    shown = {key: value for key, value in metadata.items() if key not in _HIDDEN}
    return output + _tree({"metadata": shown, **rest}, 0)


def _tree(value: dict[str, Any], depth: int) -> list[str]:
    """The lines of one level of fields: plain values in a column, maps and lists below their names."""
    margin = "  " * depth
    plain = [key for key, content in value.items() if not isinstance(content, dict | list)]
    width = max((len(_title(key)) for key in plain), default=0) + 3
    output = []
    for key, content in sorted(value.items()):
        if isinstance(content, dict):
            output += [f"{margin}{_title(key)}:", *_tree(content, depth + 1)]
        elif isinstance(content, list):
            output.append(f"{margin}{_title(key)}:")
            for element in content:
                output += _tree(element, depth + 1) if isinstance(element, dict) else [f"{margin}  {element}"]
        else:
            output.append(f"{margin}{_title(key) + ':':{width}}{human.NONE if content is None else content}")
    return output


def _title(key: str) -> str:
    """``pytorchReplicaSpecs`` as Pytorch Replica Specs. Keys that are not words, such as labels, are not changed."""
    if not key.isalnum():
        return key
    return " ".join(word[:1].upper() + word[1:] for word in _WORD.findall(key))


def _events(member: Member, item: Object) -> list[Object]:
    metadata = item.get("metadata") or {}
    path = f"/api/v1/namespaces/{metadata.get('namespace') or 'default'}/events"
    try:
        events = member.items(path, {"fieldSelector": f"involvedObject.uid={metadata.get('uid', '')}"})
    except Problem:
        return []
    return sorted(events, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))


def _print_events(this: run.Run, events: list[Object]) -> None:
    if not events:
        return this.screen.line(f"Events:  {human.NONE}")
    now = datetime.now(UTC)
    rows = [
        [
            str(event.get("type", "")),
            str(event.get("reason", "")),
            human.age(event.get("lastTimestamp") or event.get("eventTime"), now),
            str((event.get("source") or {}).get("component") or event.get("reportingComponent") or ""),
            str(event.get("message", "")).strip(),
        ]
        for event in events
    ]
    this.screen.line("Events:")
    return this.screen.table(["TYPE", "REASON", "AGE", "FROM", "MESSAGE"], rows, indent=2)
