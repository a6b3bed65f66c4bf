"""A job starts after the jobs that its `convoy.dev/after` names, in whichever order all of them come, end and are settled."""

from datetime import timedelta
from itertools import permutations

import pytest
import yaml
from django.utils import timezone

from fleet.errors import InvalidInput
from jobs.models import Dependency, Job
from jobs.services.follow import sweep
from jobs.services.follow.timeouts import max_wait
from jobs.services.lifecycle import dependencies
from jobs.services.submission.changes import actions
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
AFTER = "convoy.dev/after"


@pytest.fixture(autouse=True)
def fleet():
    books.a_cluster("north", 300)


def named(name: str, after: str = "", **fields) -> str:
    text = pytorch_job(name, workers=0, **fields)
    return books.annotated(AFTER, after, text) if after else text


def submit(*texts: str) -> None:
    books.apply(*texts)
    books.cycle()


def ends(name: str, condition: str = "Succeeded") -> None:
    books.sent()
    books.report(name, condition)
    books.cycle()


def stands(name: str = "train") -> tuple[str, str]:
    job = books.job(name)
    return job.state, job.reason["code"] if job.state == Job.State.QUEUED else ""


WAITS, FAILED = (Job.State.QUEUED, "WaitingForJob"), (Job.State.QUEUED, "PredecessorFailed")
STARTS = (Job.State.PLACED, "")


@pytest.mark.parametrize("first", [0, 1])
def test_both_may_be_in_one_file_in_any_order(first):
    texts = [named("prepare"), named("train", "prepare")]
    submit(*(texts if first == 0 else texts[::-1]))
    assert (stands("prepare"), stands()) == (STARTS, WAITS)
    assert "prepare (" in books.job("train").reason["message"]
    ends("prepare")
    assert stands() == STARTS


def test_it_waits_for_a_job_that_is_submitted_later():
    submit(named("train", "prepare"))
    assert stands() == WAITS and "prepare (not submitted yet)" in books.job("train").reason["message"]
    submit(named("prepare"))
    assert stands() == WAITS
    ends("prepare")
    assert stands() == STARTS


def test_it_starts_at_once_after_a_job_that_has_succeeded_before():
    submit(named("prepare"))
    ends("prepare")
    submit(named("train", "prepare"))
    assert stands() == STARTS


@pytest.mark.parametrize(("entry", "end", "outcome"), [
    ("prepare", "Failed", FAILED), ("prepare?ok", "Failed", FAILED),
    ("prepare?any", "Failed", STARTS), ("prepare?any", "Succeeded", STARTS),
])  # fmt: skip
def test_it_is_held_up_by_a_failure_only_where_it_asks_for_success(entry, end, outcome):
    submit(named("prepare"), named("train", entry))
    ends("prepare", end)
    assert stands() == outcome


@pytest.mark.parametrize(("entry", "outcome"), [("prepare", FAILED), ("prepare?any", STARTS)])
def test_it_is_told_of_a_predecessor_that_was_deleted_before_it_ended(entry, outcome):
    submit(named("prepare"), named("train", entry))
    books.sent()
    actions.delete(books.job("prepare"), by="test", now=timezone.now())
    books.cycle()
    assert stands() == WAITS, "its pods may still run"
    books.gone("prepare")
    sweep.run(timezone.now())
    books.cycle()
    assert not Job.objects.filter(name="prepare").exists() and stands() == outcome


@pytest.mark.parametrize(("end", "outcome"), [("Succeeded", STARTS), ("Failed", FAILED)])
def test_an_end_is_not_lost_when_the_predecessor_is_deleted_before_it_was_looked_at(end, outcome):
    submit(named("prepare"), named("train", "prepare"))
    books.sent()
    books.report("prepare", end)
    books.gone("prepare")
    assert actions.delete(books.job("prepare"), by="test", now=timezone.now())
    books.cycle()
    assert stands() == outcome


def test_a_success_counts_for_ever_and_a_failure_until_the_job_is_submitted_again():
    submit(named("a"), named("b"), named("train", "a, b"))
    ends("a")
    books.gone("a")
    actions.delete(books.job("a"), by="test", now=timezone.now())
    ends("b", "Failed")
    books.gone("b")
    actions.delete(books.job("b"), by="test", now=timezone.now())
    books.cycle()
    message = books.job("train").reason["message"]
    assert stands() == FAILED and message.startswith("b has failed") and "submit b again" in message
    submit(named("a"), named("b"))
    assert stands() == WAITS and "a (" not in books.job("train").reason["message"]
    ends("b")
    assert stands() == STARTS


def test_jobs_of_the_same_names_in_two_namespaces_are_no_cycle():
    one, two = named("a", "b"), yaml.safe_load(named("b", "a"))
    two["metadata"]["namespace"] = "another"
    books.apply(one, yaml.safe_dump(two))
    assert Dependency.objects.count() == 2


def test_it_names_the_cycle_that_a_submission_would_close_and_applies_nothing():
    submit(named("a", "b"), named("b", "c"))
    with pytest.raises(InvalidInput, match="c after a after b after c"):
        books.apply(named("new"), named("c", "a?any"))
    assert not Job.objects.filter(name__in=["new", "c"]).exists()
    with pytest.raises(InvalidInput, match="alone after alone"):
        books.apply(named("alone", "alone"))
    ends_in_no_cycle = named("c", "d")
    submit(ends_in_no_cycle)
    with pytest.raises(InvalidInput, match="b after a after b"):
        books.apply(named("b", "a"))
    assert books.job("b").manifest["metadata"]["annotations"][AFTER] == "c"


def test_jobs_of_a_kind_are_told_apart_by_it():
    batch = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: prepare}\nspec: {template: {spec: {restartPolicy: Never,"
    submit(f"{batch} containers: [{{name: c, image: i}}]}}}}}}", named("prepare", "Job/prepare"))
    submit(named("train", "PyTorchJob/prepare"), named("both", "prepare"))
    message = Job.objects.get(kind="PyTorchJob", name="prepare").reason["message"]
    assert "Job/prepare (" in message and stands() == stands("both") == WAITS


@pytest.mark.parametrize(("after", "fault"), [
    ("a, ,b", "'' is none"), ("a?maybe", "'a\\?maybe' is none"), ("A_b", "'A_b' is none"), ("a, a?any", "names a twice"),
    (",".join(f"j{number}" for number in range(201)), "names 201 jobs, more than 200"), ("x/y/z", "'x/y/z' is none"),
])  # fmt: skip
def test_it_refuses_what_names_no_jobs(after, fault):
    with pytest.raises(InvalidInput, match=f"{AFTER} .*{fault}"):
        books.apply(named("train", after))


def test_it_waits_for_a_hundred_with_as_few_queries_as_for_one(django_assert_max_num_queries):
    names = [f"part-{number}" for number in range(100)]
    submit(*(named(name, gpus=1) for name in names), named("train", ", ".join(names)))
    assert ", 95 more, as its" in books.job("train").reason["message"]
    Job.objects.filter(name__in=names[:-1]).update(state=Job.State.SUCCEEDED)
    with django_assert_max_num_queries(17):
        dependencies.settle(
            timezone.now() + timedelta(minutes=2)
        )  # no journal says it: the look at all of them finds it
    assert Dependency.objects.filter(met_at=None).get().name == names[-1]
    ends(names[-1])
    assert stands() == STARTS


def test_what_ends_is_settled_by_looking_at_those_alone_that_wait_for_it(monkeypatch):
    submit(named("a"), named("b"), named("other"), named("after-b", "b"))
    submit(*(named(f"after-a-{number}", "a", gpus=1) for number in range(3)))
    books.cycle()  # what the cycle before has written of them is no news to it
    looked_at: set[str] = set()
    changed = dependencies._changed
    monkeypatch.setattr(dependencies, "_changed", lambda jobs: looked_at.update(map(str, jobs)) or changed(jobs))
    ends("other")
    ends("a")
    assert looked_at == {str(books.job(f"after-a-{number}")) for number in range(3)}
    assert stands("after-a-2") == STARTS and stands("after-b") == WAITS


def test_a_change_that_could_not_be_settled_is_settled_by_the_next_pass(monkeypatch):
    submit(named("prepare"), named("train", "prepare"))
    books.sent()
    with monkeypatch.context() as patch:
        patch.setattr(dependencies, "lock_jobs", fails)
        books.report("prepare", "Succeeded")
        with pytest.raises(RuntimeError):
            dependencies.settle(timezone.now())
    assert dependencies.settle(timezone.now()) == 1 and books.job("train").awaits is None


def fails(*_: object) -> None:
    raise RuntimeError("the database went away")


def test_it_asks_once_when_no_job_waits_for_others(django_assert_num_queries):
    with django_assert_num_queries(1):
        dependencies.settle(timezone.now())


@pytest.mark.parametrize("order", list(permutations(["a", "b", "c"]))[::2])
def test_a_chain_runs_in_its_order_whatever_the_order_of_submission(order):
    texts = {"a": named("a"), "b": named("b", "a"), "c": named("c", "b")}
    for name in order:
        submit(texts[name])
    for name, after in (("a", ["b", "c"]), ("b", ["c"]), ("c", [])):
        assert stands(name) == STARTS and {stands(each) for each in after} <= {WAITS}
        ends(name)


def test_the_annotation_may_change_while_the_job_waits_and_is_ignored_once_it_has_started():
    submit(named("a"), named("train", "a"))
    submit(named("train", "a, never"))
    assert "never" in books.job("train").reason["message"]
    submit(named("train"))
    assert stands() == STARTS and not Dependency.objects.exists()
    books.sent()
    books.report("train", "Running")
    submit(named("train", "never"))
    assert books.job("train").awaits is None and books.job("train").state == Job.State.RUNNING


def test_its_place_in_the_queue_and_its_time_to_wait_begin_when_the_others_have_ended():
    text = books.annotated("job-supervisor.kube-ai.io/max-wait-time", "60", named("train", "prepare", gpus=301))
    submit(named("prepare"), text)
    now = timezone.now()
    assert max_wait.run(now + timedelta(hours=1)) == 0
    books.sent()
    books.report("prepare", "Succeeded")
    dependencies.settle(now + timedelta(hours=1))
    assert max_wait.run(now + timedelta(hours=1, seconds=59)) == 0
    assert max_wait.run(now + timedelta(hours=1, seconds=60)) == 1


def test_a_suspended_predecessor_has_not_ended_and_the_sweep_alone_settles_the_rest():
    submit(named("prepare"), named("train", "prepare"))
    actions.suspend(books.job("prepare"), by="ada", now=timezone.now())
    books.cycle()
    assert "prepare (Suspended)" in books.job("train").reason["message"]
    Job.objects.filter(name="prepare").update(state=Job.State.SUCCEEDED)
    sweep.run(timezone.now())
    assert books.job("train").awaits is None


def test_the_jobs_of_a_namespace_wait_for_so_many_predecessors_and_no_more(monkeypatch):
    """A tenant must not make every cycle of all teams read more and more."""
    monkeypatch.setattr(dependencies, "MOST_OPEN", 3)
    submit(named("a", "x, y"))
    with pytest.raises(InvalidInput, match="would wait for 4 predecessors, more than 3: name fewer, or submit"):
        books.apply(named("b", "x, y"))
    assert not Job.objects.filter(name="b").exists() and Dependency.objects.count() == 2
    submit(named("b", "x"))
    assert stands("b") == WAITS
