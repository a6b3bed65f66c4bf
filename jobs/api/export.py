"""Jobs as a file, read page by page: neither a thread nor the database waits for the file's reader.

Served by the ASGI side of the web process. Which jobs the file has, and in which order, is decided when it begins; each page
is read when the one before it was taken. What a job looks like elsewhere in REST is not known here.
"""

import csv
import json
from array import array
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.core.serializers.json import DjangoJSONEncoder
from django.db import close_old_connections
from django.db.models import F, QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from rest_framework import serializers

from fleet.db import connections
from fleet.limits.seats import take_seat_again
from jobs.models import Job

_COLUMNS = (
    "namespace", "name", "kind", "state", "reason", "cluster", "queue", "gpus", "priority", "attempt", "created_at",
    "started_at", "finished_at", "id",
)  # fmt: skip
_FORMULAS = ("=", "+", "-", "@", "\N{FULLWIDTH EQUALS SIGN}", "\N{FULLWIDTH PLUS SIGN}", "\N{FULLWIDTH HYPHEN-MINUS}",
             "\N{FULLWIDTH COMMERCIAL AT}")  # fmt: skip
"""What begins a formula, also after blanks and in the wide letters of East Asia."""
EXPORTED = 100_000
"""Jobs in one export at most."""
AT_ONCE = 2000
"""Jobs of one page."""
_threads = ThreadPoolExecutor(4, thread_name_prefix="exports")
Row = tuple[Any, ...]
Readable = Callable[[QuerySet[Job]], QuerySet[Job]]
"""The jobs that the reader may see now."""


class ExportQuery(serializers.Serializer[Any]):
    form = serializers.ChoiceField([("csv", "CSV"), ("json", "JSON")], required=False, default="csv")


def as_file(request: HttpRequest, rows: QuerySet[Job], form: str, readable: Readable) -> StreamingHttpResponse:
    """The jobs in their order. A page leaves out what its reader may no longer see, and what was deleted meanwhile."""
    keys = array("q", rows.values_list("pk", flat=True)[:EXPORTED])
    pages = _pages(keys, readable)
    parts = _json_parts(pages) if form == "json" else _csv_parts(pages)
    connections.give_back()
    kind = "application/json" if form == "json" else "text/csv; charset=utf-8"
    content = _read_in_threads(parts) if isinstance(request, ASGIRequest) else parts
    body = StreamingHttpResponse(content, content_type=kind)
    body["Content-Disposition"] = f'attachment; filename="jobs.{form}"'
    return body


async def _read_in_threads(parts: Iterator[str]) -> AsyncIterator[str]:
    """Takes a thread, and the request's seat, for as long as a part is read."""
    step = sync_to_async(_next_part, thread_sensitive=False, executor=_threads)
    while True:
        await take_seat_again()
        if (part := await step(parts)) is None:
            return
        yield part


def _next_part(parts: Iterator[str]) -> str | None:
    close_old_connections()
    try:
        return next(parts, None)
    finally:
        connections.give_back()


def _pages(keys: Sequence[int], readable: Readable) -> Iterator[list[Row]]:
    for start in range(0, len(keys), AT_ONCE):
        page = keys[start : start + AT_ONCE]
        rows_by_key = {key: row for key, *row in _named(readable(Job.objects.filter(pk__in=page)))}
        yield [tuple(rows_by_key[key]) for key in page if key in rows_by_key]


def _named(rows: QuerySet[Job]) -> Iterable[Row]:
    return rows.annotate(where=F("cluster__name"), why=F("reason_code")).values_list(
        "pk", "namespace", "name", "kind", "state", "why", "where", "leaf", "gpus", "priority", "attempt", "created_at",
        "started_at", "finished_at", "uid",
    )  # fmt: skip


def _json_parts(pages: Iterable[list[Row]]) -> Iterator[str]:
    """One array."""
    before = "["
    for rows in pages:
        documents = [json.dumps(dict(zip(_COLUMNS, row, strict=True)), cls=DjangoJSONEncoder) for row in rows]
        if documents:
            yield before + ",\n".join(documents)
            before = ",\n"
    yield "]\n" if before != "[" else "[]\n"


class Line:
    """A file that hands each line on."""

    def write(self, text: str) -> str:
        return text


def _csv_parts(pages: Iterable[list[Row]]) -> Iterator[str]:
    writer = csv.writer(Line())
    yield writer.writerow(_COLUMNS)
    for rows in pages:
        if rows:
            yield "".join(writer.writerow([plain(cell) for cell in row]) for row in rows)


def plain(cell: Any) -> Any:
    """Nothing a spreadsheet would take for a formula."""
    if hasattr(cell, "isoformat"):
        return cell.isoformat()
    is_formula = isinstance(cell, str) and cell.lstrip().startswith(_FORMULAS)
    return f"'{cell}" if is_formula else cell
