"""Readers of the web process that do not read: none of them keeps a thread, so that others are answered as before."""

import asyncio
import csv
import io
import json
from collections.abc import Awaitable, Callable

import pytest
from django.utils import timezone

from deploy.config.asgi import application
from fleet.models import Grant, Token
from fleet.services.authorization import access
from jobs.api import export
from jobs.models import Job
from tests.support.asgi_door import Reader
from tests.support.people import person

pytestmark = pytest.mark.django_db(transaction=True)
EXPORT = "/api/v1/jobs/export/"
LARGE_FILE = "/static/admin/js/vendor/jquery/jquery.js"
MORE_THAN_THREADS = 20
COUNT = 450


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(300):
            await story()

    asyncio.run(within())


def token_of(name: str, namespace: str) -> str:
    return access.mint(person(name, ("editor", namespace)), "t", life=None, now=timezone.now())[1]


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of jobs of namespace ``vision``, of which a page has a part; two others are of another team."""
    monkeypatch.setattr(export, "AT_ONCE", 100)
    names = [f"job-{number:04}" for number in range(COUNT)]
    homes = [("vision", name) for name in names] + [("speech", "foreign-0"), ("speech", "foreign-1")]
    now = timezone.now()
    others = {"api_version": "kubeflow.org/v1", "kind": "PyTorchJob", "manifest": {}, "roles": [], "total": {}}
    Job.objects.bulk_create(
        Job(namespace=home, name=name, created_at=now, queued_at=now, **others) for home, name in homes
    )
    return names


def reader(
    token: str, path: str, query: bytes = b"ordering=name", *, is_slow: bool = False, address: str = ""
) -> Reader:
    headers = ((b"host", b"localhost"),)
    return Reader(application, token, path, query, is_slow=is_slow, address=address or "10.0.0.1", headers=headers)


def test_exports_that_are_not_read_keep_no_thread_and_are_whole_in_the_end(jobs: list[str]) -> None:
    tokens = [token_of(f"mal{number}", "vision") for number in range(MORE_THAN_THREADS // 4)]
    innocent = token_of("bob", "speech")

    async def story() -> None:
        slow = [
            reader(token, EXPORT, is_slow=True, address=f"10.0.1.{number}")
            for number, token in enumerate(tokens)
            for _ in range(4)
        ]
        await asyncio.gather(*(each.stuck.wait() for each in slow))
        other = reader(innocent, "/api/v1/jobs/")
        await other.task
        assert other.code == 200 and json.loads(other.body)["count"] == 2
        for each in slow:
            each.goes_on.set()
            await each.task
            assert [row["name"] for row in csv.DictReader(io.StringIO(each.body.decode()))] == jobs
            assert b"foreign" not in each.body

    run(story)


def test_files_that_are_not_read_keep_no_thread() -> None:
    async def story() -> None:
        slow = [reader(f"n{n}", LARGE_FILE, is_slow=True, address=f"10.0.1.{n}") for n in range(MORE_THAN_THREADS)]
        await asyncio.gather(*(each.stuck.wait() for each in slow))
        other = reader("", "/livez")
        await other.task
        assert other.code == 200
        for each in slow:
            await each.leave()
            assert each.code == 200

    run(story)


@pytest.mark.parametrize("end", ["token", "role"])
def test_an_export_shows_no_page_that_its_reader_may_not_see_any_more(jobs: list[str], end: str) -> None:
    token = token_of("mal", "vision")

    async def story() -> None:
        slow = reader(token, EXPORT, b"ordering=name&form=json", is_slow=True)
        await slow.stuck.wait()
        rights = Token.objects.all() if end == "token" else Grant.objects.all()
        await rights.adelete()
        slow.goes_on.set()
        await slow.task
        assert [row["name"] for row in json.loads(slow.body)] == jobs[: export.AT_ONCE]

    run(story)
