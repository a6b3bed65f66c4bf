"""``convoy notices``: who was told that its place is taken back, and what it did."""

from datetime import UTC, datetime, timedelta

from tests.cli.builders import JOB_ID, ago, job


def moment(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


def test_it_shows_the_deadline_and_after_how_long_a_pod_heard_and_left(server, convoy):
    at = moment(-20)
    heard = (datetime.fromisoformat(at) + timedelta(seconds=1.5)).isoformat()
    row = {
        "attempt": 1, "cluster": "north", "pod": "llama-worker-1", "node": "n1", "cause": "aws-spot", "scope": "Pods",
        "at": at, "deadline": moment(100), "heard_at": heard, "left_at": None, "saved_step": 40, "stopped_at": None,
    }  # fmt: skip
    server.page("jobs/", job(created_at=ago(60)))
    server.on(f"jobs/{JOB_ID}/notices/", [row])
    said = convoy("notices", "llama")
    assert said.code == 0, said.err
    assert "llama-worker-1" in said.out and "aws-spot" in said.out and "+1.5s" in said.out and "in 1m" in said.out
    assert convoy("notices", "llama", "-o", "json").code == 0
