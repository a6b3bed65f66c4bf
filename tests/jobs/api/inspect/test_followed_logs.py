"""Logs that are followed over REST: by no thread each, so many of one user, and no longer than they may be read."""

import asyncio
import threading
import uuid

import httpx
import pytest
from django.utils import timezone

from fleet.kube.resources import PODS
from fleet.models import Cluster, Grant, Pod, Token
from fleet.services.authorization import access
from jobs.api.inspect import logs
from tests.jobs.api.builders import submitted, url
from tests.support.members import api, eventually, join, members, with_namespace
from tests.support.people import person
from tests.support.pod_streams import Ticking
from tests.support.web import served

__all__ = ["members"]
pytestmark = pytest.mark.django_db(transaction=True)
MANY = 24
PATIENCE = httpx.Timeout(60)


@pytest.fixture
def shown():
    return Ticking()


@pytest.fixture
def north(members, shown):
    return members("north", log_source=shown)


@pytest.fixture
def job(north):
    """One whose master prints what is ticked; its worker has just gone in the member, which the rows do not know yet."""
    job = submitted("llama")
    client, row = api(north), join(north)
    Cluster.objects.filter(pk=row.pk).update(state=Cluster.State.READY)
    with_namespace(client, "vision")
    spec = {"containers": [{"name": "main", "image": "a"}], "nodeName": "n1"}
    client.create(PODS.path("vision"), {"metadata": {"name": "llama-master-0", "namespace": "vision"}, "spec": spec})
    client.merge_patch(PODS.path("vision", "llama-master-0", "status"), {"status": {"phase": "Running"}})
    for role in ("master", "worker"):
        Pod.objects.create(
            cluster=row, namespace="vision", name=f"llama-{role}-0", uid=str(uuid.uuid4()), job_uid=job.uid,
            attempt=job.attempt, role=role, index=0, phase="Running", created_at=timezone.now(),
        )  # fmt: skip
    return job


@pytest.fixture
def open_log(job):
    """Opens the job's log, as often as it is called, in the name of a viewer; all are closed at the end."""
    user = person("ada", (Grant.Role.VIEWER, "vision"))
    token = access.mint(user, "t", life=None, now=timezone.now())[1]
    with served() as port:
        base = f"http://127.0.0.1:{port}"

        async def opened(client: httpx.AsyncClient, query: str = "") -> httpx.Response:
            request = client.build_request("GET", base + url(job, f"logs/?follow=true{query}"))
            request.headers["Authorization"] = f"Bearer {token}"
            return await client.send(request, stream=True)

        yield opened


def readers():
    return {each for each in threading.enumerate() if each.name.startswith("logs")}


def story(work):
    async def told():
        async with httpx.AsyncClient(timeout=PATIENCE) as client:
            return await work(client)

    return asyncio.run(told())


def test_they_take_no_thread_each_and_end_when_the_token_is_revoked(open_log, shown, monkeypatch):
    monkeypatch.setattr(logs, "LOOK_AGAIN_S", 0.5)

    before = readers()

    async def work(client):
        answers = [await open_log(client) for _ in range(MANY)]
        lines = [answer.aiter_lines() for answer in answers]
        shown.tick()
        assert [await anext(each) for each in lines] == ["tick"] * MANY
        grown = readers() - before
        await asyncio.to_thread(Token.objects.update, revoked_at=timezone.now())
        rest = [[line async for line in each] for each in lines]
        return grown, rest

    grown, rest = story(work)
    assert not grown and rest == [[]] * MANY
    eventually(lambda: logs.following.total() == 0)


def test_one_too_many_of_a_user_is_refused_and_a_place_is_free_after_an_end(open_log, settings):
    settings.CONVOY_LIMITS = type(settings.CONVOY_LIMITS)(streams=2)

    async def work(client):
        answers = [await open_log(client) for _ in range(2)]
        refused = await open_log(client)
        text = (await refused.aread()).decode()
        await answers[0].aclose()
        for _ in range(600):
            again = await open_log(client)
            if again.status_code == 200:
                break
            await again.aread()
            await asyncio.sleep(0.1)
        return refused.status_code, text, again.status_code

    status, text, again = story(work)
    assert (status, again) == (429, 200) and "2 by one user" in text
    eventually(lambda: logs.following.total() == 0)


def test_the_members_refusal_is_the_answer_and_takes_no_place(open_log):
    async def work(client):
        missing = await open_log(client, "&pod=llama-worker-0")
        return missing.status_code, (await missing.aread()).decode()

    status, text = story(work)
    assert status == 404 and "north has no log of llama-worker-0" in text, (status, text)
    assert logs.following.total() == 0


def test_a_member_that_breaks_off_ends_the_log_with_a_line_that_says_so(open_log, shown, north):
    async def work(client):
        answer = await open_log(client)
        lines = answer.aiter_lines()
        shown.tick()
        first = await anext(lines)
        await asyncio.to_thread(north.stop)
        return [first, *[line async for line in lines]]

    lines = story(work)
    assert lines[0] == "tick" and lines[-1].startswith("convoy: "), lines
