"""What starts and ends ask of the database, counted in statements: no more with many waiting jobs than with few.

A cycle asks no more either when it places many gangs than when it places two.
"""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.kube.resources import PYTORCH_JOBS
from jobs.models import Job, Work
from jobs.services.dispatch import dispatcher
from tests.support import books
from tests.support.passive import passive_member
from tests.support.world import pytorch_job

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "postgresql", reason="counts what is asked where writers need no locks"),
]
BUDGET = {"idle cycle": 14, "cycle": 29, "push": 25, "report of start": 14, "report of end": 15}
"""Statements that begin and end transactions count as well."""


def statements(work):
    with CaptureQueriesContext(connection) as captured:
        work()
    return [row["sql"] for row in captured]


@pytest.fixture
def member(tmp_path):
    with passive_member(tmp_path) as found:
        yield found


def report(member, name, condition):
    path = PYTORCH_JOBS.path("default", name)
    status = {"conditions": [{"type": condition, "status": "True"}]}
    member.client.merge_patch(f"{path}/status", {"status": status})
    member.report(PYTORCH_JOBS)


def push():
    for pk in list(Work.objects.filter(state=Work.State.PENDING).values_list("pk", flat=True)):
        dispatcher.push(pk, timezone.now)


def one_after_another(member, waiting):
    """Statements of each step of a gang's life, once everything that is kept between cycles is warm."""
    books.apply(*(pytorch_job(f"gang-{i}", workers=0, gpus=8) for i in range(waiting + 3)))
    found = {}
    for name in ("gang-0", "gang-1"):
        found["cycle"] = statements(books.cycle)
        assert books.job(name).state == Job.State.PLACED
        found["push"] = statements(push)
        found["report of start"] = statements(lambda name=name: report(member, name, "Running"))
        assert books.job(name).state == Job.State.RUNNING
        books.cycle()
        found["idle cycle"] = statements(books.cycle)
        found["report of end"] = statements(lambda name=name: report(member, name, "Succeeded"))
        assert books.job(name).state == Job.State.SUCCEEDED
    return found


@pytest.mark.parametrize("waiting", [1, 60])
def test_a_gang_costs_no_more_statements_than_its_budget_however_many_wait(member, waiting):
    found = one_after_another(member, waiting)
    counts = {step: len(rows) for step, rows in found.items()}
    assert {step: n for step, n in counts.items() if n > BUDGET[step]} == {}


def placing(gangs):
    """Statements of one cycle that places so many gangs, once everything that is kept between cycles is warm."""
    books.apply(*(pytorch_job(f"at-once-{gangs}-{i}", workers=0, gpus=1) for i in range(gangs)))
    made = statements(books.cycle)
    assert Job.objects.filter(name__startswith=f"at-once-{gangs}-", state=Job.State.PLACED).count() == gangs
    return made


def test_a_cycle_costs_no_more_statements_when_it_places_many_gangs_than_when_it_places_two():
    books.a_cluster("north", 64)
    placing(1)
    two, forty = placing(2), placing(40)
    assert [sql for sql in forty if sql not in two and "LIMIT 21" in sql] == [], (
        "columns that were left out are read job by job"
    )
    assert len(forty) == len(two)
