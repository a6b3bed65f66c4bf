"""Hands the audit's chain on to where the operator wants it: a file, syslog, a webhook; each line at least once, in order.

How far each sink has come is kept in the database, and lines that a sink has not taken are kept beyond their retention: a
sink that is away loses nothing. One process does this at a time.
"""

import json
import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import urllib3
from django.conf import settings

from fleet.core.security.audit_sinks import Sinks
from fleet.db import isolation
from fleet.models import AuditEntry, AuditSink
from fleet.services.auditing import audit_chain

log = logging.getLogger(__name__)

_AT_ONCE = 200
_BATCHES = 10
_TIMEOUT_S = 5.0
_SYSLOG_PRIORITY = 13 * 8 + 5
"""Facility log audit, severity notice."""
_LONGEST_DATAGRAM = 8 * 1024
Write = Callable[[Sequence[str]], None]


class SinkFailed(Exception):
    """The message says why; the lines are tried again."""


def line(row: AuditEntry) -> str:
    """One line of JSON, as every sink and the export have it."""
    shown: dict[str, Any] = {"at": row.at.isoformat(), "seq": row.seq, "digest": row.digest}
    return json.dumps({**shown, **{field: getattr(row, field) for field in audit_chain.FIELDS}}, default=str)


def hand_on(now: datetime) -> None:
    """Takes every sink as far as it lets itself be taken; what it refuses is kept for the next time."""
    for name, write in _writers(settings.CONVOY_AUDIT_SINKS).items():
        isolation.run("audit_sinks.hand_on", [name], partial(_hand_on_to, name, write, now))


def _hand_on_to(name: str, write: Write, now: datetime) -> None:
    sink, _ = AuditSink.objects.get_or_create(name=name)
    try:
        _hand_on(sink, write)
    except (OSError, urllib3.exceptions.HTTPError, SinkFailed) as e:
        log.warning("audit sink %s: %s", name, e)
        _failed(sink, str(e), now)
    else:
        AuditSink.objects.filter(pk=sink.pk).exclude(error="").update(error="", failing_since=None)


def delivered() -> int | None:
    """The last place in the chain that every sink has; None where there are no sinks."""
    names = _writers(settings.CONVOY_AUDIT_SINKS)
    reached = dict(AuditSink.objects.filter(name__in=names).values_list("name", "seq"))
    return min((reached.get(name, 0) for name in names), default=None)


def failing() -> Sequence[AuditSink]:
    return list(AuditSink.objects.filter(name__in=_writers(settings.CONVOY_AUDIT_SINKS)).exclude(error=""))


def _hand_on(sink: AuditSink, write: Write) -> None:
    for _ in range(_BATCHES):
        rows = audit_chain.after(sink.seq, _AT_ONCE)
        if not rows:
            return
        write([line(row) for row in rows])
        sink.seq = rows[-1].seq or sink.seq
        AuditSink.objects.filter(pk=sink.pk).update(seq=sink.seq)


def _failed(sink: AuditSink, message: str, now: datetime) -> None:
    since = sink.failing_since or now
    AuditSink.objects.filter(pk=sink.pk).update(error=message[:300], failing_since=since)


def _writers(sinks: Sinks) -> Mapping[str, Write]:
    writers: dict[str, Write] = {}
    if sinks.file:
        writers["file"] = lambda lines: _to_file(Path(sinks.file), lines)
    if sinks.syslog:
        writers["syslog"] = lambda lines: _to_syslog(sinks.syslog, lines)
    if sinks.webhook:
        writers["webhook"] = lambda lines: _to_webhook(sinks, lines)
    return writers


def _to_file(path: Path, lines: Sequence[str]) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(handle, "a") as out:
        out.write("".join(f"{text}\n" for text in lines))


def _to_syslog(target: str, lines: Sequence[str]) -> None:
    messages = [f"<{_SYSLOG_PRIORITY}>1 - - convoy - audit - {text}".encode() for text in lines]
    url = urlsplit(target)
    if url.scheme == "tcp":
        with socket.create_connection((url.hostname or "", url.port or 601), _TIMEOUT_S) as connection:
            # Octet counting (RFC 6587): a line may be longer than one packet.
            connection.sendall(b"".join(b"%d %s" % (len(message), message) for message in messages))
        return
    family = socket.AF_INET if url.scheme == "udp" else socket.AF_UNIX
    address: Any = (url.hostname or "", url.port or 514) if url.scheme == "udp" else target
    with socket.socket(family, socket.SOCK_DGRAM) as connection:
        connection.settimeout(_TIMEOUT_S)
        connection.connect(address)
        for message in messages:
            connection.send(message[:_LONGEST_DATAGRAM])


def _to_webhook(sinks: Sinks, lines: Sequence[str]) -> None:
    headers = {"Content-Type": "application/x-ndjson"}
    if sinks.webhook_token:
        headers["Authorization"] = f"Bearer {sinks.webhook_token}"
    body = "".join(f"{text}\n" for text in lines).encode()
    answer = _http.request(
        "POST", sinks.webhook, body=body, headers=headers, timeout=_TIMEOUT_S, redirect=False, retries=False
    )
    if not 200 <= answer.status < 300:
        raise SinkFailed(f"the webhook answered {answer.status}")


_http = urllib3.PoolManager(maxsize=1)
