"""``convoy goodput``: what became of the GPU-hours, or of the time of one job."""

from tests.cli.builders import JOB_ID, job

PARTS = dict.fromkeys(("productive", "checkpoint", "lost", "unknown", "hung", "restart", "waiting"), 0.0)
TIMES = {
    "seconds": {**PARTS, "lost": 60.0},
    "gpu_hours": {**PARTS, "lost": 12.5},
    "ettr": 0.97,
    "failures": 3,
    "mtbf_hours": None,
}


def test_it_shows_what_cost_the_gpu_hours_as_a_table_and_as_a_file(server, convoy):
    server.on("goodput/", {"by": "class", "results": [{"name": "infrastructure", **TIMES}]})
    shown = convoy("goodput", "--by", "class")
    assert shown.code == 0, shown.err
    assert shown.out.splitlines()[1].split() == ["infrastructure", "0", "0", "12.5", "0", "0", "0", "0", "0.97", "3"]
    lines = convoy("goodput", "-o", "csv").out.splitlines()
    assert lines[0].startswith("name,productive_gpu_hours,") and lines[1] == "infrastructure,0,0,12.5,0,0,0,0,0.97,3,"
    assert convoy("goodput", "-o", "pdf").code == 2


def test_without_a_loss_it_names_the_grouping_that_shows_all_hours(server, convoy):
    server.on("goodput/", {"by": "class", "results": []})
    shown = convoy("goodput")
    assert shown.code == 0 and not shown.out.strip()
    assert "--by fleet shows what became of all hours" in shown.err


def test_it_shows_the_attempts_of_a_job(server, convoy):
    first = {"attempt": 1, "cluster": "north", "outcome": "Failed", "category": "code", **TIMES}
    server.page("jobs/", job())
    server.on(f"jobs/{JOB_ID}/", job())
    server.on(f"jobs/{JOB_ID}/goodput/", {"attempts": [first], "total": TIMES})
    rows = [line.split() for line in convoy("goodput", "llama").out.splitlines()]
    assert rows[1][:7] == ["1", "north", "Failed", "code", "0", "0", "60"] and rows[2][0] == "all"
