"""What a member's API answers with: bodies, pages and watch events, none of which is believed to end or to be what it should.

A member may lie, or an attacker may answer in its place. A worker reads many members, so that one of them must not use up its
memory, nor keep its threads.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import urllib3

from fleet.member import answers, deadlines, errors

PAGE = 500
"""Objects asked for in one page of a list: bounds the memory of one answer."""
LONGEST_ANSWER = 2**27
LONGEST_ANSWER_S = 30.0
"""Bytes, and seconds beyond the timeout until the whole answer is there: a member must not use up the memory of a worker, nor
keep it, by an answer that does not end."""
LONGEST_ERROR = 2**20
LONGEST_LINE = 2**24
"""Bytes, more than any object of a watch has."""
LONGEST_LIST_S = 300.0
"""For all pages of a collection."""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    type: str
    """ADDED, MODIFIED, DELETED or BOOKMARK; an ERROR is raised, never yielded."""
    object: dict[str, Any]


class TooLong(Exception):  # noqa: N818 - it is the answer that is wrong
    pass


def whole(response: urllib3.BaseHTTPResponse, most: int) -> bytes:
    """The body, never decompressed: a few bytes may stand for more than a process has. Raises `TooLong`."""
    body = bytearray()
    while chunk := response.read1(65536, decode_content=False):
        body += chunk
        if len(body) > most:
            raise TooLong(f"longer than {most} bytes")
    return bytes(body)


def error_body(response: urllib3.BaseHTTPResponse) -> bytes:
    """What a stream was refused with; empty where it cannot be read."""
    try:
        with deadlines.within(LONGEST_ANSWER_S):
            return whole(response, LONGEST_ERROR)
    except (TooLong, urllib3.exceptions.HTTPError, OSError):
        return b""
    finally:
        response.close()


def lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """A line longer than `LONGEST_LINE` in pieces: a pod may write without an end, and the line is kept until its own."""
    pending, size = [], 0
    while chunk := response.read1(65536):
        first, *more = chunk.split(b"\n")
        pending.append(first)
        size += len(first)
        if more or size >= LONGEST_LINE:
            yield b"".join(pending)
            yield from more[:-1]
            pending, size = more[-1:], len(more[-1]) if more else 0
    if size:
        yield b"".join(pending)


def page(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer with its ``items``, objects all of them; what is not there or null is empty."""
    items = answer.get("items") or []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise errors.MemberAway("the items of the list are not objects")
    return {**answer, "items": items}


def next_page(page: dict[str, Any]) -> str:
    """Where the next page of a collection begins; empty: this is the last."""
    metadata = page.get("metadata")
    token = metadata.get("continue") if isinstance(metadata, dict) else None
    return token if isinstance(token, str) else ""


def watch_query(params: dict[str, str], resource_version: str, timeout_s: int) -> dict[str, str]:
    return {
        **params,
        "watch": "1",
        "resourceVersion": resource_version,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(timeout_s),
    }


def watch_event(line: bytes) -> WatchEvent:
    try:
        event = answers.parse(line)
        kind, body = event["type"], event["object"]
    except (ValueError, KeyError, TypeError) as e:
        raise errors.MemberAway("the watch sent a broken line") from e
    if not isinstance(kind, str) or not isinstance(body, dict):
        raise errors.MemberAway("the watch sent a broken line")
    if kind == "ERROR":
        code = body.get("code")
        raise errors.from_answer(code if isinstance(code, int) and code else 500, json.dumps(body).encode())
    return WatchEvent(kind, body)
