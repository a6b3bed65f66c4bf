"""``top`` shows what GPUs do where that is measured, and lists the jobs that leave theirs idle."""

from tests.cli.builders import JOB_ID, ago, job

OTHER_ID = "22222222-2222-2222-2222-222222222222"


def node(name: str, used: int) -> dict:
    return {"name": name, "cluster": "north", "address": "10.0.0.1", "ready": True, "unschedulable": False, "labels": {},
            "allocatable": {"nvidia.com/gpu": 8}, "requested": {"nvidia.com/gpu": used},
            "gpus": {"allocatable": 8, "requested": used}}  # fmt: skip


def measured(*values: float | None, **fields) -> list[dict]:
    return [
        {"gpu": str(i), "utilization": value, "memory_used": 1000.0 * (i + 1), "memory_total": 81920.0, "power": 300.0,
         "temperature": None, "namespace": "", "pod": ""} | fields
        for i, value in enumerate(values)
    ]  # fmt: skip


def test_top_shows_utilization_where_it_is_known(server, convoy):
    server.page("nodes/", node("a", 4), node("b", 0))
    server.on("gpu-usage/clusters/north/", {"nodes": [{"node": "a", "gpus": measured(90, 30, None)}]})
    rows = [line.split() for line in convoy("top", "node").out.splitlines()]
    assert rows[0][6] == "GPU(Util)" and (rows[1][6], rows[2][6]) == ("60%", "-")
    server.page("jobs/", job(), job("whisper", id=OTHER_ID))
    for each in (JOB_ID, OTHER_ID):
        server.page(f"jobs/{each}/pods/")
    server.on("gpu-usage/jobs/", {"results": [{"id": JOB_ID, "utilization": 42.4}]})
    lines = convoy("top", "job").out.splitlines()
    assert lines[0].endswith("GPU(Util)") and {lines[1].split()[-1], lines[2].split()[-1]} == {"42%", "-"}


def test_top_job_shows_what_the_gpus_of_each_pod_do(server, convoy):
    server.page("jobs/", job())
    server.on(f"jobs/{JOB_ID}/", job())
    pod = {"name": "w-0", "phase": "Running", "created_at": ago(60), "node": "a", "attempt": 1, "role": "worker", "index": 0,
           "cluster": "north"}  # fmt: skip
    server.page(f"jobs/{JOB_ID}/pods/", pod)
    server.on("gpus/north/a/", {"topology": False, "gpus": []})
    server.on(f"jobs/{JOB_ID}/gpu-usage/", {"gpus": measured(90, 80, pod="w-0")})
    [row] = [line.split() for line in convoy("top", "job", job()["name"]).out.splitlines() if line.startswith("  w-0")]
    assert row[-5:] == ["0,1", "85%", "3000MiB", "/", "163840MiB"]


def test_top_idle_lists_jobs_that_leave_their_gpus_idle(server, convoy):
    idle = {"namespace": "vision", "name": "llama", "queue": "root/vision", "cluster": "north", "idle_gpus": 7, "gpus": 8,
            "since": ago(7300), "gpu_hours": 14.2}  # fmt: skip
    server.on("gpu-usage/idle/", {"minutes": 30, "is_cut": False, "results": [idle]})
    assert convoy("top", "idle").out.splitlines()[1].split() == [
        "vision", "llama", "root/vision", "north", "7/8", "2h1m", "14.2",
    ]  # fmt: skip
    server.on("gpu-usage/idle/", {"minutes": 30, "is_cut": False, "results": []})
    assert "for 30 minutes" in convoy("top", "idle").err


def test_top_team_and_top_queue_show_what_their_gpus_do(server, convoy):
    rows = [
        {"name": "vision", "gpus": 16, "measured": 8, "utilization": 41.6, "idle": 2},
        {"name": "", "gpus": 1, "measured": 0, "utilization": None, "idle": 0},
    ]
    server.on("gpu-usage/groups/", {"results": rows})
    lines = [line.split() for line in convoy("top", "team").out.splitlines()]
    assert lines == [
        ["TEAM", "GPUS", "MEASURED", "IDLE", "UTIL"], ["vision", "16", "8", "2", "42%"], ["-", "1", "0", "0", "-"]
    ]  # fmt: skip
    assert convoy("top", "queue").out.startswith("QUEUE")


def test_top_team_says_that_a_server_of_before_does_not_know_it(server, convoy):
    said = convoy("top", "team")
    assert said.code == 3 and "older than this command" in said.err and "upgrade" in said.err
