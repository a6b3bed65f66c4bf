"""A job suspended and resumed just as its copy succeeds has succeeded, once, in whatever order the parts learn of it.

Unless its copy was stopped before: that is an exit 0 which answers the stop, and the job goes on.
"""

from itertools import permutations

import pytest
from django.db import transaction
from django.utils import timezone

from fleet.kube.resources import POD_GROUPS, PYTORCH_JOBS
from jobs.models import Attempt, Work
from jobs.services.dispatch import dispatcher
from jobs.services.follow.status import JobEventHandler
from jobs.services.lifecycle import works
from jobs.services.scheduling import loop
from jobs.services.submission.changes import actions
from tests.support import books, laws
from tests.support.examples import IS_FULL
from tests.support.passive import CLAIM, passive_member
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
PATH = PYTORCH_JOBS.path("default", "llama")
STEPS = ("suspend", "resume", "succeed", "work", "work", "watch", "cycle")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("north")


@pytest.fixture
def member(home):
    with passive_member(home) as made:
        yield made


def orders() -> list[tuple[str, ...]]:
    """Those that differ in what a part can see, and whose steps do not come before there is anything for them to do."""
    return [order for order in sorted(set(permutations(STEPS))) if _matters(order)]


def _matters(order: tuple[str, ...]) -> bool:
    at = {step: order.index(step) for step in STEPS}
    return (
        at["suspend"] < min(at["resume"], at["work"])
        and at["resume"] < at["cycle"]
        and at["succeed"] < at["watch"]
        # Rows do not show that the copy has succeeded: only before a step that reads the member its time matters.
        and order[at["succeed"] + 1] in ("work", "watch")
    )


class Story:
    """One job on one member, whose watcher may be as late as the order says."""

    def __init__(self, member) -> None:
        self.member, self.turns = member, 0
        self.succeeded = self.was_stopped = False
        self.last_seen: dict[str, dict] = {}
        self.attempts: set[str] = set()
        books.apply(pytorch_job("llama"))
        loop._idle_caches.clear()
        books.cycle()
        self.work()
        self._set("Running")
        self.watch()
        assert books.job("llama").state == "Running"

    def suspend(self) -> None:
        if not books.job("llama").finished:
            actions.suspend(books.job("llama"), by="ada", now=timezone.now())

    def resume(self) -> None:
        if books.job("llama").suspended and not books.job("llama").finished:
            actions.resume(books.job("llama"), by="ada", now=timezone.now())

    def succeed(self) -> None:
        """Nothing, where the copy is gone already."""
        for copy in self._present_copies():
            if copy["metadata"]["labels"]["convoy.dev/attempt"] == "1":
                is_suspended = copy["spec"].get("runPolicy", {}).get("suspend", False)
                self.was_stopped = is_suspended or "deletionTimestamp" in copy["metadata"]
                self.succeeded = self._set("Succeeded")

    def work(self) -> None:
        """Workers try once what is to be done, now or later."""
        self._look()
        self.turns += 1
        now = timezone.now() + self.turns * CLAIM
        for pk in list(Work.objects.order_by("attempt").values_list("pk", flat=True)):
            Work.objects.filter(pk=pk).update(due_at=now)
            dispatcher.push(pk, lambda: now)
        self.member.collect_garbage(PYTORCH_JOBS)
        self._present()

    def watch(self) -> None:
        """The watcher delivers what has changed since it last did: what is gone as it last was."""
        self._look()
        items = {body["metadata"]["uid"]: body for body in self.member.items(PYTORCH_JOBS)}
        gone = [body for uid, body in self.last_seen.items() if uid not in items]
        self.last_seen = items
        handler, now = JobEventHandler(), timezone.now()
        if gone:
            handler.on_delete(self.member.cluster.pk, PYTORCH_JOBS, gone, now)
        if items:
            handler.on_update(self.member.cluster.pk, PYTORCH_JOBS, list(items.values()), now)

    def cycle(self) -> None:
        loop._idle_caches.clear()
        books.cycle()

    def finish(self) -> None:
        for _ in range(3):
            self.work()
            self.watch()
            if books.job("llama").finished and not works.actionable().exists():
                return
            self.cycle()

    def end(self) -> None:
        for resource in (PYTORCH_JOBS, POD_GROUPS):
            for body in self.member.items(resource):
                self.member.client.delete(resource.path("default", body["metadata"]["name"]), propagation="Background")

    def _look(self) -> None:
        for body in self.member.items(PYTORCH_JOBS):
            self.last_seen[body["metadata"]["uid"]] = body

    def _present(self) -> set[str]:
        now = {body["metadata"]["labels"]["convoy.dev/attempt"] for body in self._present_copies()}
        self.attempts |= now
        return now

    def _present_copies(self) -> list[dict]:
        return self.member.items(PYTORCH_JOBS)

    def _set(self, condition: str) -> bool:
        status = {"conditions": [{"type": condition, "status": "True"}]}
        self.member.client.merge_patch(f"{PATH}/status", {"status": status})
        return True


def run_story(member, order) -> Story:
    story = Story(member)
    try:
        for step in order:
            getattr(story, step)()
        story.finish()
    finally:
        story.end()
    return story


def test_a_success_counts_in_every_order_unless_the_copy_was_stopped_before_it(member):
    counted, stopped = 0, 0
    for order in orders()[:: 1 if IS_FULL else 3]:
        with transaction.atomic():
            story = run_story(member, order)
            job = books.job("llama")
            if story.was_stopped:
                stopped += 1
                assert (job.finished, job.attempt) == (False, 2), f"{order}: {job.state}, {job.reason}"
            elif story.succeeded:
                counted += 1
                assert (job.state, story.attempts) == ("Succeeded", {"1"}), f"{order}: {job.state}, {job.reason}"
                assert Attempt.objects.get(number=1).outcome == "Succeeded", order
                laws.terminal_holds_nothing()
            transaction.set_rollback(True)
    assert counted > 5 and stopped > 2
