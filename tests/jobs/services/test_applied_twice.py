"""The same new objects applied by several requests at once: one wins, the others are asked to apply again."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.errors import Conflict
from jobs.models import Dependent, Job, Policy
from jobs.services.submission import manifests, submit
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}"


def apply(*texts: str) -> str:
    try:
        submit.apply(manifests.parse("\n---\n".join(texts).encode()), by="ada", now=timezone.now())
    except Conflict as e:
        return e.message
    return ""


@contextmanager
def another_first(table: str):
    """Another request inserts the same row right before this one does."""
    copied = []

    def wrapped(execute, sql, params, many, context):
        if sql.startswith(f'INSERT INTO "{table}"') and not copied:
            copied.append(sql)
            execute(sql, params, many, context)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(wrapped):
        yield
    assert copied


@pytest.mark.parametrize(
    ("table", "text"), [("jobs_policy", POLICY), ("jobs_dependent", CONFIG), ("jobs_job", pytorch_job("a"))]
)
def test_it_asks_to_apply_again_what_another_request_has_just_created(table, text):
    with another_first(table):
        assert "apply it again" in apply(text)
    assert apply(text) == ""


def test_it_creates_everything_once_however_many_apply_it_at_once():
    together = Barrier(3)

    def one(number: int) -> str:
        try:
            together.wait(60)
            return apply(POLICY.replace("example-policy", f"policy-{number}"), CONFIG, pytorch_job(f"job-{number}"))
        finally:
            connection.close()

    for number in range(5):
        with ThreadPoolExecutor(3) as pool:
            answers = list(pool.map(one, [number] * 3))
        assert "" in answers and all("apply it again" in answer for answer in answers if answer)
    assert (Policy.objects.count(), Dependent.objects.count(), Job.objects.count()) == (5, 1, 5)


@pytest.mark.parametrize("suspended", [False, True], ids=["unchanged", "changed"])
def test_a_file_of_jobs_that_are_there_is_read_with_one_statement_for_all(suspended):
    texts = [pytorch_job(f"job-{number}") for number in range(8)]
    apply(POLICY, *texts)
    if suspended:
        texts[0] = texts[0].replace("spec:\n", "spec:\n  runPolicy: {suspend: true}\n", 1)
    with CaptureQueriesContext(connection) as queries:
        assert apply(*texts, texts[0]) == ""
    assert len([each for each in queries if each["sql"].startswith('SELECT "jobs_job"."id", "jobs_job"."uid"')]) < 6
    assert Job.objects.filter(suspended=True).count() == suspended
