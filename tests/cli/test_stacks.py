"""``convoy stacks``: where the ranks of a job are."""

from tests.cli.builders import JOB_ID, job

LINE = {"depth": 1, "function": "all_reduce", "file": "c10d.py:9", "ranks": "0-1/3", "others": "2"}


def test_it_shows_the_tree_and_names_the_rank_that_is_missing(server, convoy):
    lines = [{**LINE, "text": "all_reduce@c10d.py:9@0-1/3|2"}]
    answer = {"lines": lines, "ranks": "0-3", "suspects": "2", "pods_without": ["llama-worker-9"], "warnings": []}
    server.page("jobs/", job())
    server.on(f"jobs/{JOB_ID}/", job())
    server.on(f"jobs/{JOB_ID}/stacks/", answer)
    shown = convoy("stacks", "llama")
    assert shown.code == 0 and shown.out == "  all_reduce@c10d.py:9@0-1/3|2\n"
    assert "rank 2 is not where most of the others wait" in shown.err and "llama-worker-9" in shown.err
    assert convoy("stacks", "llama", "-o", "json").code == 0
    assert convoy("stacks", "llama", "-o", "svg").code == 2
