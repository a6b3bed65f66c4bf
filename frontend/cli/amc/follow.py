"""``kubectl amc get -w``: lists objects of all selected clusters, then prints every change as one stream of lines.

A cluster that stops answering causes one warning and is retried; once it answers, the changes in between are printed. If a
cluster no longer has the requested version (410 Gone), its list is read again.
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
from frontend.cli.amc.rows import Listing, line, rows_of
from frontend.cli.amc.run import Run
from frontend.cli.problems import Problem

_WATCH_S = 300
_RETRY_S = 1.0
Change = tuple[str, Listing, Object]
"""The type of the change, the list it belongs to, and the row."""


@dataclass(slots=True)
class _Follower:
    """Lists and watches one cluster."""

    member: Member
    kind: str
    names: list[str]
    namespace: str
    params: dict[str, str]
    known: dict[str, Object] = field(default_factory=dict)
    """The rows as they were last printed, by uid."""

    def list_changes(self) -> tuple[Listing, list[Change]]:
        """Reads the list. Returns it with the rows that were added, changed or deleted since they were printed."""
        resource = discovery.find(self.member, self.kind)
        params = {**self.params, **({"fieldSelector": f"metadata.name={self.names[0]}"} if self.names else {})}
        listing = rows_of(self.member, resource, resource.path(self.namespace), params)
        current = {_metadata(row)["uid"]: row for row in listing.items}
        changed = [
            ("MODIFIED" if uid in self.known else "ADDED", listing, row)
            for uid, row in current.items()
            if uid not in self.known or _version(self.known[uid]) != _version(row)
        ]
        changed += [("DELETED", listing, row) for uid, row in self.known.items() if uid not in current]
        self.known = current
        return listing, changed

    def changes(self, listing: Listing) -> Iterator[Change]:
        """The changes since the list, until the watch ends.

        Raises `Failure` when the connection is lost, or when the cluster no longer has the version of the list.
        """
        path = listing.resource.path(self.namespace)
        selected = {**self.params, **({"fieldSelector": f"metadata.name={self.names[0]}"} if self.names else {})}
        for event in self.member.changes(path, {**selected, "resourceVersion": listing.version}, seconds=_WATCH_S):
            table = event["object"]
            if event["type"] == "ERROR":
                raise Failure(str(table.get("message")), code=int(table.get("code") or 500))
            listing.columns = table.get("columnDefinitions") or listing.columns
            listing.version = str((table.get("metadata") or {}).get("resourceVersion") or listing.version)
            for row in table.get("rows") or [] if event["type"] != "BOOKMARK" else []:
                listing.version = _version(row)
                if event["type"] == "DELETED":
                    self.known.pop(_metadata(row)["uid"], None)
                else:
                    self.known[_metadata(row)["uid"]] = row
                yield event["type"], listing, row


def _metadata(row: Object) -> Object:
    metadata: Object = row["object"]["metadata"]
    return metadata


def _version(row: Object) -> str:
    return str(_metadata(row).get("resourceVersion") or "")


def follow(
    this: Run, kind: str, names: list[str], params: dict[str, str], form: Format, *, headed: bool, events: bool
) -> int:
    """Prints changes until all clusters have refused. Returns an exit code."""
    params = {**params, **({} if form.by_server else {"includeObject": "Object"})}
    followers = {
        name: _Follower(this.fleet.member(name), kind, names, this.namespace, params) for name in this.clusters
    }
    first = this.gather(lambda member: followers[member.name].list_changes())
    printer = _Printer(this, form, headed=headed, events=events)
    printer.show([(cluster, change) for cluster, (_, changed) in first.answers.items() for change in changed])
    refused = [problem for name, problem in first.failures.items() if name not in first.away]
    for problem in refused:
        this.screen.note(str(problem), style="red")
    updates: queue.Queue[tuple[str, Change | Problem]] = queue.Queue()
    followed = set(first.answers) | set(first.away)
    for name in followed:
        listing = first.answers[name][0] if name in first.answers else None
        threading.Thread(target=_run, args=(followers[name], listing, updates), daemon=True).start()
    while followed:
        cluster, update = updates.get()
        if not isinstance(update, Problem):
            printer.show([(cluster, update)])
        elif isinstance(update, Failure) and update.away:
            this.screen.note(f"warning: cluster {cluster}: {update.message}", style="yellow")
        else:
            this.screen.note(str(update), style="red")
            followed.discard(cluster)
    return 1


def _run(follower: _Follower, listing: Listing | None, updates: queue.Queue[tuple[str, Change | Problem]]) -> None:
    """Puts the changes of one cluster into the queue until the cluster refuses. Reports only once that it is away."""
    name, away = follower.member.name, listing is None
    while True:
        try:
            if listing is None:
                listing, changed = follower.list_changes()
                for change in changed:
                    updates.put((name, change))
            away = False
            for change in follower.changes(listing):
                updates.put((name, change))
        except Failure as e:
            if e.code == 410:
                listing = None
                continue
            if not e.away or not away:
                updates.put((name, e))
            if not e.away:
                return
            listing, away = None, True
            time.sleep(_RETRY_S)
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
        for cluster, (event, listing, row) in changes:
            item = row["object"]
            item["metadata"].pop("managedFields", None)
            item = formats.annotated(item, cluster) if len(self._this.clusters) > 1 else item
            if self._form.name == "name":
                self._this.screen.line(f"{listing.resource.shown}/{item['metadata']['name']}")
            else:
                shown = {"type": event, "object": item} if self._events else item
                if self._form.name == "yaml":
                    self._this.screen.line("---")
                self._this.screen.document(shown, self._form.name, self._form.render)

    def _lines(self, changes: list[tuple[str, Change]]) -> None:
        """Prints rows in columns that are as wide as the rows printed together, and never get narrower."""
        lines = []
        for cluster, (event, listing, row) in changes:
            item = row["object"] if self._form.columns else row
            headers, cells = line(self._form, self._this.namespace, cluster, listing, item)
            lines.append((("EVENT", *headers), [event, *cells]) if self._events else (headers, cells))
        for at, (headers, cells) in enumerate(lines):
            if headers != self._headers:
                alike = [list(headers), *(row for other, row in lines[at:] if other == headers)]
                self._headers, self._widths = headers, [max(map(len, column)) for column in zip(*alike, strict=True)]
                if self._headed:
                    self._line(list(headers))
            self._widths = [max(width, len(cell)) for width, cell in zip(self._widths, cells, strict=True)]
            self._line(cells)

    def _line(self, cells: list[str]) -> None:
        padded = (cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True))
        self._this.screen.line("   ".join(padded).rstrip())
