"""What a simulated member sends of a log, piece by piece, to a reader with wishes."""

import asyncio
from typing import Any

import pytest

from fleet.kube.server.app import Chunks
from fleet.kube.server.request import Request
from simulator.apiserver import pod_logs

POD = {"metadata": {"name": "llama"}, "spec": {"nodeName": "n1", "containers": [{"name": "main"}]}}
PIECES = (b"one\ntw", b"o\n", b"", b"three\nfo", b"ur\nfive\n")
TIME = "2026-01-01T00:00:00.000000000Z "


class Target:
    namespace, name = "default", "llama"


class Printing:
    """A pod that prints one piece more each time it is read."""

    def __init__(self) -> None:
        self.pieces = list(PIECES)

    def read(self, namespace: str, name: str, offset: int) -> tuple[bytes, bool]:
        assert offset == sum(len(each) for each in PIECES[: len(PIECES) - len(self.pieces)])
        piece = self.pieces.pop(0)
        return piece, not self.pieces


def read(monkeypatch: pytest.MonkeyPatch, **query: str) -> str:
    monkeypatch.setattr(pod_logs, "_FOLLOW_S", 0)
    request, target = Request("GET", "/", query, {}), Target()
    answer = pod_logs.log(request, target, POD, Printing(), lambda: False)  # type: ignore[arg-type]
    assert isinstance(answer, Chunks)

    async def whole(content: Any) -> bytes:
        return b"".join([piece async for piece in content])

    return asyncio.run(whole(answer.content)).decode()


def test_each_line_of_a_log_that_is_followed_has_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ("one", "two", "three", "four", "five")
    assert read(monkeypatch, follow="true", timestamps="true") == "".join(f"{TIME}{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("query", "sent"), [({}, "one\nt"), ({"follow": "true"}, "one\nt"), ({"tailLines": "1"}, "tw")]
)
def test_it_sends_no_more_bytes_than_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, query: dict[str, str], sent: str
) -> None:
    assert read(monkeypatch, limitBytes="5", **query) == sent


def test_a_log_that_is_followed_ends_with_the_last_byte_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, follow="true", limitBytes="8") == "one\ntwo\n"
