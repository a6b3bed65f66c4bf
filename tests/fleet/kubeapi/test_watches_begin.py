"""A watch that begins while objects come, change and go tells of every one of them, whatever its reader asked for.

The change is committed between the two queries a watch begins with, and the reader is a stock client: a list, then a watch
from the version of that list, folded as an informer does."""

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing, nullcontext
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from fleet.changes import journal
from fleet.kube.requests import selectors
from fleet.kube.server.selection import Selection
from fleet.kube.server.watching import Watch, WatchOptions
from fleet.kubeapi.feed import Feed
from fleet.kubeapi.objects.kinds import Kind
from fleet.kubeapi.watching import View, begin
from jobs.kubeapi.kinds import kinds
from jobs.models import Job
from jobs.services.submission import manifests, submit
from jobs.services.submission.changes import actions
from tests.support.between import after_each_look_at
from tests.support.world import PATIENCE_S, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
LABELLED = pytorch_job("llama").replace("name: llama", "name: llama\n  labels: {team: vision}")
SELECTED = {
    "everything": Selection(),
    "its label": Selection(labels=selectors.parse_labels("team=vision")),
    "its name": Selection(fields=selectors.parse_fields("metadata.name=llama")),
    "its label and name": Selection(selectors.parse_labels("team"), selectors.parse_fields("metadata.name=llama")),
}


def apply(text: str) -> None:
    submit.apply(manifests.parse(text.encode()), by="test", now=timezone.now())


def delete() -> None:
    actions.delete(Job.objects.get(name="llama"), by="test", now=timezone.now())


CHANGES: dict[str, tuple[bool, Callable[[], None]]] = {
    "creation": (False, lambda: apply(LABELLED)),
    "change": (True, lambda: apply(LABELLED.replace("vision", "vision, tier: gold"))),
    "departure from the label": (True, lambda: apply(LABELLED.replace("vision", "speech"))),
    "deletion": (True, delete),
}
"""What is committed in between, and whether the job is there before."""


def listed(kind: Kind, wanted: Selection) -> tuple[int, dict[str, str]]:
    """As a client lists: the version, and what it knows by uid."""
    shown = [each["metadata"] for each in kind.objects(None, None, wanted.exact) if wanted.takes(each)]
    return journal.head(), {each["uid"]: each["name"] for each in shown}


def fold(line: bytes, known: dict[str, str]) -> int:
    """The version up to which a bookmark says that the reader has heard of everything, 0 without one."""
    complete = 0
    for text in line.splitlines():
        event = json.loads(text)
        metadata = event["object"]["metadata"]
        if event["type"] == "DELETED":
            known.pop(metadata["uid"], None)
        elif event["type"] in ("ADDED", "MODIFIED"):
            known[metadata["uid"]] = metadata["name"]
        else:
            complete = int(metadata["resourceVersion"])
    return complete


def _with_database(work: Callable[..., Any], args: tuple[Any, ...], between: Callable[[], None] | None) -> Any:
    try:
        with after_each_look_at("fleet_journalentry", between) if between else nullcontext():
            return work(*args)
    finally:
        connection.close()


async def watched(
    watch: Watch, known: dict[str, str], commit: Callable[[], None], until: Callable[[int], bool]
) -> None:
    """Follows until it has heard of everything."""

    async def in_thread(work: Callable[..., Any], *args: Any) -> Any:
        between = commit if getattr(work, "__func__", None) is View.begin else None
        return await asyncio.to_thread(_with_database, work, args, between)

    async with (
        asyncio.timeout(PATIENCE_S),
        aclosing(watch.lines(partial(begin, feed=Feed(in_thread), in_thread=in_thread))) as lines,
    ):
        async for line in lines:
            if until(fold(line, known)):
                return


def following(kind: Kind, wanted: Selection, since: int, *, initial: bool) -> Watch:
    options = WatchOptions(kind, None, wanted, since, initial)
    return Watch(
        options,
        bookmarks=True,
        timeout_s=PATIENCE_S,
        include=None,
        right=lambda: nullcontext(lambda: True),
        clock=timezone.now,
        bookmark_s=0.02,
    )


@pytest.mark.parametrize("begins", ["after a list", "with everything", "with everything and a mark"])
@pytest.mark.parametrize("selected", SELECTED)
@pytest.mark.parametrize("change", CHANGES)
def test_it_tells_what_was_committed_while_it_began(admin: Any, change: str, selected: str, begins: str) -> None:
    there, commit = CHANGES[change]
    wanted = SELECTED[selected]
    apply(pytorch_job("old"))
    if there:
        apply(LABELLED)
    kind = next(each for each in kinds() if each.name == "PyTorchJob")
    since, known = listed(kind, wanted) if begins == "after a list" else (0, {})
    after: list[tuple[int, dict[str, str]]] = []

    def committed() -> None:
        commit()
        after.append(listed(kind, wanted))

    watch = following(kind, wanted, since, initial=begins.endswith("mark"))
    asyncio.run(watched(watch, known, committed, lambda complete: bool(after) and complete >= after[0][0]))
    assert after and known == after[0][1]
