"""A kind that a member refuses stays refused until it is listed, whatever the member answers between."""

import asyncio
import random
from collections import deque
from contextlib import asynccontextmanager

import pytest

from fleet.kube.resources import RESOURCE_CLAIMS
from fleet.member import watching
from fleet.member.errors import MemberAway, MemberDenied, MemberMissing
from fleet.member.watching import Listed, Reflector
from fleet.services.watching.reports import Batch

CLAIM = {"metadata": {"namespace": "team", "name": "llama-0"}}


class Member:
    """Its answers in turn; with the last the reader is cancelled."""

    cluster = "north"

    def __init__(self, *answers) -> None:
        self.answers = deque(answers)

    @asynccontextmanager
    async def collection(self, path, params):
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        yield answer()

    async def watch(self, path, **asked):
        raise asyncio.CancelledError
        yield


async def pages():
    yield {"items": [CLAIM], "metadata": {"resourceVersion": "7"}}


@pytest.mark.parametrize(
    "refusal", [MemberDenied("no", status=403), MemberMissing("no", status=404)], ids=["403", "404"]
)
def test_it_stays_refused_while_the_member_does_not_answer_and_until_it_is_listed(monkeypatch, refusal):
    monkeypatch.setattr(watching, "_HOPELESS_S", 0.0)
    monkeypatch.setattr(watching, "_PAUSE_S", (0.0, 0.0))
    seen = []

    async def deliver(delivery):
        seen.append((delivery, reader.refused))

    member = Member(refusal, MemberAway("busy", status=429), MemberAway("gone"), refusal, pages)
    reader = Reflector(member, RESOURCE_CLAIMS, deliver, random.Random(1))
    reader.optional = True
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(reader.run())
    (first, _), (second, still) = seen
    assert first == Listed(RESOURCE_CLAIMS, [], refused=True) and not second.refused and second.items
    assert still and not reader.refused
    batch = Batch()
    batch.add(first)
    assert batch.refused
    batch.add(second)
    assert not batch.refused and len(batch.present) == 1
