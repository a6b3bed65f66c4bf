"""``kubectl amc describe``: one object of a cluster in full and in words, with the events the cluster has of it."""

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
    look = partial(get.look, kind=kind, names=names, namespace=this.namespace, params=params, read=get.objects)

    def ask(member: Member) -> rows.Found:
        found = look(member)
        for item in found.items:
            item["_events"] = _events(member, item)
        return found

    shown = this.gather(ask)
    first = True
    for cluster, found in shown.answers.items():
        for item in found.items:
            if not first:
                this.screen.line("\n")
            first = False
            for line in lines(found.resource, cluster, item):
                this.screen.line(line)
            _print_events(this, item["_events"])
    return get.conclude(this, shown, names)


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
        output += [f"{title + ':':{width}}{first}", *(" " * width + each for each in others)]
    rest = {key: value for key, value in item.items() if key not in ("apiVersion", "kind", "metadata", "_events")}
    kept = {key: value for key, value in metadata.items() if key not in _HIDDEN}
    return output + _tree({"metadata": kept, **rest}, 0)


def _tree(value: dict[str, Any], depth: int) -> list[str]:
    """One level of fields: plain ones in a column, the others below their names."""
    margin = "  " * depth
    width = max((len(_title(key)) for key, each in value.items() if not isinstance(each, dict | list)), default=0) + 3
    output = []
    for key, each in sorted(value.items()):
        if isinstance(each, dict):
            output += [f"{margin}{_title(key)}:", *_tree(each, depth + 1)]
        elif isinstance(each, list):
            output.append(f"{margin}{_title(key)}:")
            for element in each:
                output += _tree(element, depth + 1) if isinstance(element, dict) else [f"{margin}  {element}"]
        else:
            output.append(f"{margin}{_title(key) + ':':{width}}{human.NONE if each is None else each}")
    return output


def _title(key: str) -> str:
    """``pytorchReplicaSpecs`` as Pytorch Replica Specs; keys that are no words, such as labels, as they are."""
    if not key.isalnum():
        return key
    return " ".join(word[:1].upper() + word[1:] for word in _WORD.findall(key))


def _events(member: Member, item: Object) -> list[Object]:
    metadata = item.get("metadata") or {}
    path = f"/api/v1/namespaces/{metadata.get('namespace') or 'default'}/events"
    try:
        found = member.items(path, {"fieldSelector": f"involvedObject.uid={metadata.get('uid', '')}"})
    except Problem:
        return []
    return sorted(found, key=lambda each: str(each.get("lastTimestamp") or each.get("eventTime") or ""))


def _print_events(this: run.Run, events: list[Object]) -> None:
    if not events:
        return this.screen.line(f"Events:  {human.NONE}")
    now = datetime.now(UTC)
    rows = [
        [
            str(each.get("type", "")),
            str(each.get("reason", "")),
            human.age(each.get("lastTimestamp") or each.get("eventTime"), now),
            str((each.get("source") or {}).get("component") or each.get("reportingComponent") or ""),
            str(each.get("message", "")).strip(),
        ]
        for each in events
    ]
    this.screen.line("Events:")
    return this.screen.table(["TYPE", "REASON", "AGE", "FROM", "MESSAGE"], rows, indent=2)
