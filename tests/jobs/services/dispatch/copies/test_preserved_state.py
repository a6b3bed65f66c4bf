"""statePreservation through the real services and real members: what an attempt reported, the later ones get."""

import pytest
import yaml
from django.utils import timezone

from fleet.core.members import observed
from fleet.kube.resources import PYTORCH_JOBS
from fleet.models import Cluster, Event
from fleet.services.members import event_handlers
from fleet.services.watching.node_pod_sync import NodePodSync
from jobs.core.failover.rules import Outcome, PurgeMode
from jobs.core.policies.state_preservation import MAX_BYTES
from jobs.core.reasons import Code, Reason
from jobs.models import PreservedState
from jobs.services.failover import failover
from jobs.services.follow.status import JobEventHandler
from jobs.services.submission.changes import actions
from tests.jobs.services import lost_cluster
from tests.support import books
from tests.support.passive import passive_member
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
NAME = "j" * 53
PATH = PYTORCH_JOBS.path("default", NAME)
ALIAS = f"{'d' * 63}.example/{'n' * 63}"
RULES = [
    {"aliasLabelName": ALIAS, "jsonPath": "{.saved[-1:].path}", "env": "CKPT"},
    {"aliasLabelName": "step", "podAnnotation": "example.com/step"},
]


def policy(rules=RULES) -> str:
    body = yaml.safe_load(POLICY)
    body["spec"]["failover"] = {"application": {"statePreservation": {"rules": rules}}}
    return yaml.safe_dump(body)


@pytest.fixture
def north(tmp_path):
    with passive_member(tmp_path) as made:
        yield made


@pytest.fixture
def south(tmp_path):
    with passive_member(tmp_path, "south") as made:
        yield made


def only(*members) -> None:
    """The other clusters are lost."""
    names = [member.cluster.name for member in members]
    Cluster.objects.exclude(name__in=names).update(state=Cluster.State.UNKNOWN)
    Cluster.objects.filter(name__in=names).update(state=Cluster.State.READY)


def start(member, rules=RULES) -> None:
    only(member)
    books.apply(policy(rules), pytorch_job(NAME))
    lost_cluster.cycle()
    member.work(PYTORCH_JOBS)


def report(member, path: str | None, condition: str = "Running") -> None:
    saved = [{"path": "old"}, {"path": path}] if path is not None else None
    status = {"conditions": [{"type": condition, "status": "True"}], "saved": saved}
    member.client.merge_patch(f"{PATH}/status", {"status": status})
    member.report(PYTORCH_JOBS)


def fail_over(*to, outcome=Outcome.LOST, purge=PurgeMode.GRACEFULLY) -> None:
    failover.leave(books.job(NAME), outcome, Reason(Code.CLUSTER_LOST, "gone"), timezone.now(), purge=purge)
    only(*to)
    lost_cluster.cycle()
    to[0].work(PYTORCH_JOBS)


def copy_in(member) -> dict:
    return member.client.get(PATH)


def handed_over(member) -> tuple[str, dict, dict]:
    """The copy's attempt, its annotations, and the environment of its workers."""
    copy = copy_in(member)
    template = copy["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    env = {
        each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in template["spec"]["containers"][0]["env"]
    }
    notes = template["metadata"]["annotations"]
    assert copy["metadata"].get("annotations", {}).get(ALIAS) == notes.get(ALIAS)
    return copy["metadata"]["labels"]["convoy.dev/attempt"], notes, {k: v for k, v in env.items() if k == "CKPT"}


def test_the_next_attempt_gets_a_long_value_as_annotation_and_variable(north, south):
    start(north)
    long = "s3://" + "x" * 30_000
    report(north, long)
    fail_over(south)
    attempt, notes, env = handed_over(south)
    assert (attempt, notes[ALIAS]) == ("2", long)
    assert env == {"CKPT": f"metadata.annotations['{ALIAS}']"}
    assert ALIAS not in copy_in(south)["metadata"]["labels"]
    event = Event.objects.get(reason="StatePreserved")
    assert f"{ALIAS} of attempt 1" in event.message


def test_the_first_attempt_gets_nothing_and_keeps_its_own_words(north):
    start(north)
    _, notes, env = handed_over(north)
    assert ALIAS not in notes and env == {}
    assert notes["convoy.dev/preserve"] == "example.com/step"


def test_a_short_value_is_a_label_as_karmada_has_it(north, south):
    start(north, [{"aliasLabelName": "example.com/step", "jsonPath": "{.saved[0].path}"}])
    report(north, "new")
    fail_over(south)
    assert copy_in(south)["metadata"]["labels"]["example.com/step"] == "old"


def test_it_survives_two_failovers_of_which_the_second_reported_nothing(north, south):
    start(north)
    report(north, "ckpt-100")
    fail_over(south)
    report(south, None)
    fail_over(north)
    attempt, notes, _ = handed_over(north)
    assert (attempt, notes[ALIAS]) == ("3", "ckpt-100")


def test_each_attempt_replaces_the_value_of_the_one_before(north, south):
    start(north)
    report(north, "ckpt-100")
    fail_over(south)
    report(south, "ckpt-200")
    fail_over(north)
    assert handed_over(north)[1][ALIAS] == "ckpt-200"


def test_a_late_return_of_the_old_member_changes_nothing(north, south):
    start(north)
    report(north, "ckpt-100")
    fail_over(south)
    report(south, "ckpt-200")
    report(north, "ckpt-150")
    stored = PreservedState.objects.get()
    assert (stored.values[ALIAS]["value"], stored.values[ALIAS]["attempt"]) == ("ckpt-200", 2)


def test_a_copy_that_the_job_left_counts_until_the_next_one_is_sent(north, south):
    start(north)
    report(north, "ckpt-100")
    failover.leave(books.job(NAME), Outcome.FAILED, Reason(Code.FAILED, "unwell"), timezone.now())
    only(north, south)
    lost_cluster.cycle()
    north.client.merge_patch(f"{PATH}/status", {"status": {"saved": [{"path": "ckpt-last"}]}})
    for _ in range(3):
        north.work(PYTORCH_JOBS)
        south.work(PYTORCH_JOBS)
    assert handed_over(south)[:2][0] == "2"
    assert handed_over(south)[1][ALIAS] == "ckpt-last"


def test_a_resumed_job_gets_it_too(north):
    start(north)
    report(north, "ckpt-100")
    actions.suspend(books.job(NAME), by="test", now=timezone.now())
    north.work(PYTORCH_JOBS)
    actions.resume(books.job(NAME), by="test", now=timezone.now())
    lost_cluster.cycle()
    north.work(PYTORCH_JOBS)
    assert handed_over(north)[:1] == ("2",)
    assert handed_over(north)[1][ALIAS] == "ckpt-100"


def test_a_value_that_is_too_long_is_not_kept_and_says_so_once(north, south):
    start(north)
    report(north, "ckpt-100")
    for size in (MAX_BYTES + 1, MAX_BYTES + 2):
        report(north, "x" * size)
    event = Event.objects.get(reason="StateNotPreserved")
    assert event.count == 1 and str(MAX_BYTES) in event.message and "attempt 1 is kept" in event.message
    fail_over(south)
    assert handed_over(south)[1][ALIAS] == "ckpt-100"


def test_rules_that_leave_the_policy_hand_nothing_over(north, south):
    start(north)
    report(north, "ckpt-100")
    books.apply(POLICY)
    fail_over(south)
    copy = copy_in(south)
    assert ALIAS not in copy["metadata"].get("annotations", {})
    assert not books.job(NAME).preserves_state


def pods(member, step: str, *, attempt: int, role: str = "Master", index: int = 0, phase: str = "Running") -> None:
    """The watcher writes the row of a pod that the operator made from the copy's template."""
    template = copy_in(member)["spec"]["pytorchReplicaSpecs"][role]["template"]["metadata"]
    labels = {
        **template["labels"],
        "training.kubeflow.org/replica-type": role.lower(),
        "training.kubeflow.org/replica-index": str(index),
    }
    body = {
        "metadata": {
            "name": f"{NAME[:40]}-{role.lower()}-{index}",
            "namespace": "default",
            "uid": f"u-{attempt}-{role}-{index}",
            "labels": labels,
            "annotations": {**template["annotations"], "example.com/step": step, "other": "x"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"containers": [{"name": "pytorch"}]},
        "status": {"phase": phase},
    }
    sync = NodePodSync(member.cluster.pk)
    sync.list_nodes([])
    sync.list_pods([observed.pod(body, event_handlers.pod_role, lambda *_: True)])
    marks = sync.write(timezone.now())
    keys = {(mark.job_uid, mark.attempt) for mark in marks}
    JobEventHandler().on_pods_changed(member.cluster.pk, keys, timezone.now())


def test_an_annotation_of_the_first_pod_is_handed_over(north, south):
    start(north)
    pods(north, "41", attempt=1)
    pods(north, "42", attempt=1, phase="Failed")
    fail_over(south)
    assert handed_over(south)[1]["step"] == "42"
    assert "other" not in handed_over(south)[1]


def test_an_annotation_of_another_pod_or_a_late_one_is_not(north, south):
    start(north)
    pods(north, "7", attempt=1, role="Worker", index=1)
    fail_over(south)
    assert "step" not in handed_over(south)[1]
    pods(north, "9", attempt=1)
    assert PreservedState.objects.get().values == {}


def test_an_annotation_that_is_too_long_says_so(north):
    start(north)
    pods(north, "x" * (MAX_BYTES + 1), attempt=1)
    assert "it has no value" in Event.objects.get(reason="StateNotPreserved").message
