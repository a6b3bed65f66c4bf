"""Works are told when they change, also while nothing is said of their job."""

import pytest
from django.utils import timezone

from fleet.changes import journal
from fleet.kubeapi.feed import changes_after
from fleet.models import JournalEntry
from jobs.events import announce_works
from jobs.kubeapi.decisions import Works
from jobs.models import Work
from jobs.services.submission import manifests, submit
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
WORKS = Works()


def told(since: int) -> list[tuple[str, str]]:
    """The name and the state of each work that changed, as a watch has them."""
    changes, _ = changes_after(since, (WORKS,))
    return [(each.name, each.shown["status"]["state"]) for each in changes[WORKS] if each.shown]


def news() -> set[str]:
    """The works of which the journal has lines of their own."""
    return set(JournalEntry.objects.filter(kind="Work").values_list("name", flat=True))


def test_it_tells_a_work_that_changed_alone(world):
    world.member("north", 8)
    world.apply(POLICY, pytorch_job("llama", duration="1h"))
    world.expect("llama", "Running")
    since, work = journal.head(), Work.objects.select_related("cluster").get()
    announce_works([work], timezone.now())
    assert ("llama-pytorchjob-1-north", "Applied") in told(since)
    work.refresh_from_db()
    assert work.resource_version > since


def test_it_tells_of_no_other_work_of_the_same_job(world):
    north, south = (world.member(name, 8) for name in ("north", "south"))
    world.apply(POLICY, pytorch_job("llama", duration="1h"))
    world.expect("llama", "Running")
    world.suspend("llama")
    world.until(lambda: Work.objects.get().state == Work.State.SUSPENDED, "its copy is suspended")
    world.resume("llama")
    world.expect("llama", "Running")
    world.until(lambda: Work.objects.filter(state=Work.State.GONE).exists(), "the first copy is gone")
    since = journal.head()
    announce_works(Work.objects.select_related("cluster").filter(attempt=1), timezone.now())
    first = [state for name, state in told(since) if "-1-" in name]
    assert first == ["Gone"] and (north and south)


def test_it_tells_each_state_a_worker_brings_about(world):
    world.member("north", 8)
    world.apply(POLICY, pytorch_job("llama", duration="1h"))
    world.expect("llama", "Running")
    since = journal.head()
    world.suspend("llama")
    world.until(lambda: ("llama-pytorchjob-1-north", "Suspended") in told(since), "its being suspended is told")
    lines = JournalEntry.objects.filter(version__gt=since, kind="Work")
    assert lines.exists() and news() == {"llama-pytorchjob-1-north"}


def test_it_tells_why_a_member_does_not_take_it(world):
    member = world.member("north", 8)
    member.stop()
    submit.apply(manifests.parse(f"{POLICY}\n---\n{pytorch_job('llama')}".encode()), by="test", now=timezone.now())
    world.until(lambda: Work.objects.filter(message__gt="").exists(), "the member is away")
    assert "llama-pytorchjob-1-north" in news()
