"""What is read from the member for reports: one address uses up little of it, and jobs that are known report on meanwhile."""

import asyncio
from collections import Counter
from http import HTTPStatus

import pytest

from fleet.kube.resources import PYTORCH_JOBS
from supervisor import reports
from supervisor.reports import Answer, Reports
from supervisor.store import Store
from tests.supervisor.reporting import Member, reporting_job, steps
from tests.supervisor.world import START, World


class Door:
    def __init__(self) -> None:
        self.world, self.now = World(), 0.0
        reporting_job(self.world)
        self.member = Member(self.world)
        self.reports = Reports(self.member, Store(), lambda: START + self.now, lambda: self.now)  # type: ignore[arg-type]

    def take(self, name: str = "bert", *, token: str = "secret", address: str = "10.0.0.1", step: int = 1) -> Answer:
        return asyncio.run(self.reports.take((PYTORCH_JOBS, "default", name), token, steps(step), address))


@pytest.fixture
def door() -> Door:
    return Door()


def test_one_address_cannot_use_up_the_first_looks_of_all(door: Door):
    statuses: Counter[int] = Counter()
    for n in range(300):
        door.now += 0.05
        statuses[door.take(f"made-up-{n}", address="10.6.6.6").status] += 1
    allowed = reports.LOOKUPS_OF_ADDRESS_BURST + 15 * reports.LOOKUPS_OF_ADDRESS_PER_S
    assert statuses[HTTPStatus.FORBIDDEN] == pytest.approx(allowed, abs=1)
    assert door.take().status is HTTPStatus.OK


def test_a_known_job_reports_on_while_too_many_names_are_looked_for(door: Door):
    assert door.take().status is HTTPStatus.OK
    door.reports._lookups.per_s = door.reports._again.per_s = 0.0
    for n in range(300):
        door.take(f"made-up-{n}", address=f"10.6.6.{n}")
    assert door.take("new", address="10.0.0.2").status is HTTPStatus.TOO_MANY_REQUESTS
    gets = door.member.gets
    for _ in range(3):
        door.now += reports.KNOWN_FOR_S
        assert door.take().status is HTTPStatus.OK
    assert door.member.gets == gets + 3, "looks at known jobs are counted apart"
    door.reports._again.left = 0.0
    door.now += reports.KNOWN_FOR_S
    assert door.take().status is HTTPStatus.OK and door.member.gets == gets + 3
    assert door.take(token="other").status is HTTPStatus.TOO_MANY_REQUESTS


def test_names_that_are_made_up_drive_no_job_out_of_memory(door: Door, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reports, "MOST", 8)
    door.take()
    for n in range(50):
        door.take(f"made-up-{n}", address=f"10.6.6.{n}")
    gets = door.member.gets
    assert door.take().status is HTTPStatus.OK and door.member.gets == gets
