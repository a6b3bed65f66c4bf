"""How far jobs are, in the wide list of the command line."""

from datetime import UTC, datetime

import pytest

from frontend.cli import kinds

NOW = datetime(2026, 11, 26, 4, 0, 30, tzinfo=UTC)
REPORTED = {"attempt": 1, "step": 64, "total": 3000, "percent": 2, "eta_s": 3660, "loss": 3.51234, "world_size": 8,
            "saved_step": None, "reported_at": "2026-11-26T04:00:00Z"}  # fmt: skip
NOTHING = dict.fromkeys(REPORTED)


def shown(state: str = "Running", **said: object) -> list[str]:
    job = {"name": "llama", "state": state, "progress": {**NOTHING, **said} if said else None}
    cells = kinds.JOBS.cells(wide=True, namespace=False)
    row = dict(zip(cells, kinds.JOBS.row(job, NOW, wide=True, namespace=False), strict=True))
    return [row[head] for head in ("PROGRESS", "ETA", "LOSS", "WORLD")]


@pytest.mark.parametrize(
    ("progress", "row"),
    [
        (REPORTED, ["64/3000 (2%)", "1h", "3.512", "8"]),
        ({"percent": 40}, ["40%", "<none>", "<none>", "<none>"]),
        ({"step": 7}, ["7", "<none>", "<none>", "<none>"]),
        ({}, ["<none>"] * 4),
    ],
    ids=["all", "percent", "steps", "none"],
)
def test_it_shows_what_was_reported(progress: dict[str, object], row: list[str]) -> None:
    assert shown(**progress) == row


def test_it_shows_no_time_to_the_end_of_a_job_that_does_not_run() -> None:
    assert shown("Queued", **REPORTED)[:2] == ["64/3000 (2%)", "<none>"]
