"""``kubectl amc get -w``: what there is, then every change of it in every cluster asked, one stream of lines.

A cluster that goes away is one warning; it is retried until it is back, and the changes in between are printed then. So is
what a cluster has forgotten (410 Gone): its list is read anew.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from frontend.cli.amc import discovery, formats
from frontend.cli.amc.fleet import Failure, Member, Object
from frontend.cli.amc.formats import Format
from frontend.cli.amc.rows import Found, line, rows_of
from frontend.cli.amc.run import Run
from frontend.cli.problems import Problem

_LENGTH_S = 300
_AGAIN_S = 1.0
Change = tuple[str, Found, Object]
"""What happened, where it was read, and the row."""


@dataclass(slots=True)
class _Follower:
    """One cluster."""

    member: Member
    kind: str
    names: list[str]
    namespace: str
    params: dict[str, str]
    known: dict[str, Object] = field(default_factory=dict)
    """The rows as last printed, by uid."""

    def listed(self) -> tuple[Found, list[Change]]:
        """The rows that changed since they were printed, and those that are gone."""
        resource = discovery.find(self.member, self.kind)
        params = {**self.params, **({"fieldSelector": f"metadata.name={self.names[0]}"} if self.names else {})}
        found = rows_of(self.member, resource, resource.path(self.namespace), params)
        now = {_metadata(row)["uid"]: row for row in found.items}
        changed = [
            ("MODIFIED" if uid in self.known else "ADDED", found, row)
            for uid, row in now.items()
            if uid not in self.known or _version(self.known[uid]) != _version(row)
        ]
        changed += [("DELETED", found, row) for uid, row in self.known.items() if uid not in now]
        self.known = now
        return found, changed

    def changes(self, found: Found) -> Iterator[Change]:
        """Until the stream ends; raises `Failure` when it breaks, or when what is asked for is forgotten."""
        path = found.resource.path(self.namespace)
        selected = {**self.params, **({"fieldSelector": f"metadata.name={self.names[0]}"} if self.names else {})}
        for event in self.member.changes(path, {**selected, "resourceVersion": found.version}, seconds=_LENGTH_S):
            table = event["object"]
            if event["type"] == "ERROR":
                raise Failure(str(table.get("message")), code=int(table.get("code") or 500))
            found.columns = table.get("columnDefinitions") or found.columns
            found.version = str((table.get("metadata") or {}).get("resourceVersion") or found.version)
            for row in table.get("rows") or [] if event["type"] != "BOOKMARK" else []:
                found.version = _version(row)
                if event["type"] == "DELETED":
                    self.known.pop(_metadata(row)["uid"], None)
                else:
                    self.known[_metadata(row)["uid"]] = row
                yield event["type"], found, row


def _metadata(row: Object) -> Object:
    metadata: Object = row["object"]["metadata"]
    return metadata


def _version(row: Object) -> str:
    return str(_metadata(row).get("resourceVersion") or "")


def follow(
    this: Run, kind: str, names: list[str], params: dict[str, str], form: Format, *, headed: bool, events: bool
) -> int:
    """Does not return while a cluster can be followed."""
    wanted = {**params, **({} if form.by_server else {"includeObject": "Object"})}
    followers = {
        name: _Follower(this.fleet.member(name), kind, names, this.namespace, wanted) for name in this.clusters
    }
    first = this.gather(lambda member: followers[member.name].listed())
    printer = _Printer(this, form, headed=headed, events=events)
    printer.show([(cluster, each) for cluster, (_, changed) in first.answers.items() for each in changed])
    refused = [problem for name, problem in first.failures.items() if name not in first.away]
    for problem in refused:
        this.screen.note(str(problem), style="red")
    updates: queue.Queue[tuple[str, Change | Problem]] = queue.Queue()
    left = set(first.answers) | set(first.away)
    for name in left:
        begin = first.answers[name][0] if name in first.answers else None
        threading.Thread(target=_run, args=(followers[name], begin, updates), daemon=True).start()
    while left:
        cluster, update = updates.get()
        if not isinstance(update, Problem):
            printer.show([(cluster, update)])
        elif isinstance(update, Failure) and update.away:
            this.screen.note(f"warning: cluster {cluster}: {update.message}", style="yellow")
        else:
            this.screen.note(str(update), style="red")
            left.discard(cluster)
    return 1


def _run(each: _Follower, found: Found | None, updates: queue.Queue[tuple[str, Change | Problem]]) -> None:
    """Follows one cluster until it refuses."""
    name, away = each.member.name, found is None
    while True:
        try:
            if found is None:
                found, changed = each.listed()
                for one in changed:
                    updates.put((name, one))
            away = False
            for one in each.changes(found):
                updates.put((name, one))
        except Failure as e:
            if e.code == 410:
                found = None
                continue
            if not e.away or not away:
                updates.put((name, e))
            if not e.away:
                return
            found, away = None, True
            time.sleep(_AGAIN_S)
        except Problem as e:
            updates.put((name, e))
            return


class _Printer:
    def __init__(self, this: Run, form: Format, *, headed: bool, events: bool) -> None:
        self._this, self._form, self._headed, self._events = this, form, headed, events
        self._headers: tuple[str, ...] = ()
        self._widths: list[int] = []

    def show(self, changes: list[tuple[str, Change]]) -> None:
        if self._form.in_lines:
            self._lines(changes)
            return
        for cluster, (event, found, row) in changes:
            item = row["object"]
            item["metadata"].pop("managedFields", None)
            item = formats.noted(item, cluster) if len(self._this.clusters) > 1 else item
            if self._form.name == "name":
                self._this.screen.line(f"{found.resource.shown}/{item['metadata']['name']}")
            else:
                shown = {"type": event, "object": item} if self._events else item
                if self._form.name == "yaml":
                    self._this.screen.line("---")
                self._this.screen.document(shown, self._form.name, self._form.say)

    def _lines(self, changes: list[tuple[str, Change]]) -> None:
        """In columns as wide as what came together, and no narrower than before."""
        lines = []
        for cluster, (event, found, row) in changes:
            item = row["object"] if self._form.columns else row
            headers, cells = line(self._form, self._this.namespace, cluster, found, item)
            lines.append((("EVENT", *headers), [event, *cells]) if self._events else (headers, cells))
        for at, (headers, cells) in enumerate(lines):
            if headers != self._headers:
                alike = [list(headers), *(some for other, some in lines[at:] if other == headers)]
                self._headers, self._widths = headers, [max(map(len, column)) for column in zip(*alike, strict=True)]
                if self._headed:
                    self._line(list(headers))
            self._widths = [max(width, len(cell)) for width, cell in zip(self._widths, cells, strict=True)]
            self._line(cells)

    def _line(self, cells: list[str]) -> None:
        padded = (cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True))
        self._this.screen.line("   ".join(padded).rstrip())
