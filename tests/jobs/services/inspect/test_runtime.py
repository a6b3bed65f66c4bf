"""What runtimes say of a job is read from its pods' logs when it is asked for, within bounds, and changes nothing."""

import json

import pytest

from jobs.models import Attempt
from jobs.services.inspect import runtime
from tests.support import books

pytestmark = pytest.mark.django_db(transaction=True)
SAVED = "[2026-11-20 10:00:0{0}][INFO][0][save_shard_complete][local_id=0, step={0}]\n"


def said(name, **content):
    event = {"event_time": "2026-11-20T10:00:00", "name": name, "event_type": "END", "content": content}
    return json.dumps(event).encode() + b"\n"


@pytest.fixture
def llama(training):
    return training()


@pytest.fixture
def shown(llama, as_admin):
    return lambda: as_admin.get(f"/api/v1/jobs/{llama.uid}/runtime/").json()


def test_it_shows_the_ranks_and_the_checkpoints_of_all_pods(llama, logs, shown):
    logs["llama-master-0"] = said("#rendezvous", round=1, rank=0, world_size=2) + SAVED.format(2).encode()
    logs["llama-worker-0"] = SAVED.format(1).encode() + said("#rendezvous", round=1, rank=1, world_size=2)
    answer = shown()
    assert [(pod["pod"], pod["node"], pod["ranks"], pod["world_size"]) for pod in answer["ranks"]] == [
        ("llama-master-0", "node-a", [0], 2),
        ("llama-worker-0", "node-b", [1], 2),
    ]
    assert {(fact["step"], fact["tier"], fact["pod"]) for fact in answer["checkpoints"]} == {
        (1, "disk", "llama-worker-0"),
        (2, "disk", "llama-master-0"),
    }
    assert answer["warnings"] == []


def test_a_job_whose_runtime_says_nothing_has_pods_without_ranks(llama, shown):
    answer = shown()
    assert answer["facts"] == [] and [pod["ranks"] for pod in answer["ranks"]] == [[], []]


def test_a_forged_end_changes_neither_the_job_nor_its_attempt(llama, logs, shown):
    before = (llama.state, llama.charge, list(Attempt.objects.values()))
    logs["llama-master-0"] = said("#process_succeeded") + said("#agent_exit", exc_type="NodeCheckFailedError")
    assert [fact["event"] for fact in shown()["facts"]] == ["Succeeded", "Failed"]
    after = books.job("llama")
    assert (after.state, after.charge, list(Attempt.objects.values())) == before


@pytest.mark.parametrize(
    "log", [b"x" * 20_000_000, b"{" * 3_000_000, said("#rendezvous", rank=1) * 100_000, b"\xff" * 99999]
)
def test_a_huge_or_malformed_log_is_no_error(llama, logs, shown, log):
    logs["llama-master-0"] = log
    assert len(shown()["facts"]) <= 200


def test_a_member_that_is_away_is_a_warning(llama, shown):
    llama.cluster.access = {**llama.cluster.access, "server": "https://127.0.0.1:1"}
    llama.cluster.save()
    answer = shown()
    assert len(answer["warnings"]) == 2 and "no log of llama-master-0" in answer["warnings"][0]
    assert [pod["node"] for pod in answer["ranks"]] == ["node-a", "node-b"]


def test_only_so_many_answers_are_made_at_a_time(llama, as_admin, monkeypatch):
    monkeypatch.setattr(runtime._places, "acquire", lambda blocking: False)
    assert as_admin.get(f"/api/v1/jobs/{llama.uid}/runtime/").status_code == 503
