"""``arena list``, ``top``, ``delete``, ``prune`` and the program itself: what they print, and what they never touch."""

import os
import subprocess

import pytest

from frontend.cli.arena import views
from tests.cli.builders import JOB_ID, ago, job

OTHER_ID = "22222222-2222-2222-2222-222222222222"
ET = {"kind": "TrainingJob", "api_version": "kai.alibabacloud.com/v1alpha1"}


def pod(name: str, role: str, index: int = 0, **fields) -> dict:
    return {"name": name, "role": role, "index": index, "phase": "Running", "created_at": ago(120), "node": "gpu-0",
            "cluster": "north", "attempt": 1} | fields  # fmt: skip


def node(name: str, used: int, **fields) -> dict:
    return {"name": name, "cluster": "north", "address": "10.0.0.1", "ready": True, "unschedulable": False, "labels": {},
            "allocatable": {"nvidia.com/gpu": 8}, "requested": {"nvidia.com/gpu": used},
            "gpus": {"allocatable": 8, "requested": used}} | fields  # fmt: skip


@pytest.fixture
def arena(convoy):
    convoy("alias", "arena", "--dir", "bin")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(convoy.home / "bin" / "arena"), *words]
        return subprocess.run(command, capture_output=True, text=True, env=convoy.env, cwd=convoy.home, timeout=180)

    return run


def test_it_lists_jobs_oldest_first_with_the_node_of_the_chief(server, arena):
    waiting = job("whisper", id=OTHER_ID, state="Queued", attempt=0, started_at=None, created_at=ago(7300), gpus=8)
    server.page("jobs/", waiting, job(**ET, created_at=ago(90_000), started_at=ago(7300)))
    server.page(f"jobs/{JOB_ID}/pods/", pod("llama-worker-0", "worker"), pod("llama-master-0", "master", node="gpu-1"),
                pod("llama-master-0", "master", node="gpu-9", attempt=0))  # fmt: skip
    said = arena("list")
    assert said.stdout.splitlines() == [
        "NAME     STATUS   TRAINER     DURATION  GPU(Requested)  GPU(Allocated)  NODE",
        "llama    RUNNING  ETJOB       2h        3               2               gpu-1",
        "whisper  QUEUING  PYTORCHJOB  2h        8               N/A             N/A",
    ]


def test_top_job_counts_what_runs_and_puts_the_most_gpus_first(server, convoy):
    server.page("jobs/", job(), job("whisper", id=OTHER_ID, gpus=8), job("old", state="Succeeded", gpus=64))
    server.page(
        f"jobs/{JOB_ID}/pods/",
        pod("llama-master-0", "master"),
        pod("llama-worker-0", "worker", phase="Pending", node=""),
    )
    server.page(f"jobs/{OTHER_ID}/pods/", pod("whisper-master-0", "master"))
    header, first, second, _, total = convoy("top", "job").out.splitlines()
    assert header.split() == ["NAME", "STATUS", "TRAINER", "AGE", "GPU(Requested)", "GPU(Allocated)", "NODE"]
    assert (first.split()[:2], second.split()[:2]) == (["whisper", "RUNNING"], ["llama", "PENDING"])
    assert total == "Total Allocated/Requested GPUs of Training Jobs: 1/8"


def test_top_node_shows_modes_and_clusters_only_where_there_are_several(server, convoy):
    server.page(
        "nodes/", node("a", 4), node("b", 0, allocatable={}, requested={}, gpus={"allocatable": 0, "requested": 0})
    )
    rows = [line.split() for line in convoy("top", "node").out.splitlines()]
    assert rows[0] == ["NAME", "IPADDRESS", "ROLE", "STATUS", "GPU(Total)", "GPU(Allocated)"]
    assert rows[1:3] == [["a", "10.0.0.1", "<none>", "Ready", "8", "4"], ["b", "10.0.0.1", "<none>", "Ready", "0", "0"]]
    assert rows[-1] == ["4/8", "(50.0%)"]
    linked = {"ack.node.gpu.schedule": "topology", "node-role.kubernetes.io/worker": ""}
    server.page("nodes/", node("a", 4), node("a", 0, cluster="south", ready=False, labels=linked))
    rows = [line.split() for line in convoy("top", "node", "a").out.splitlines()]
    assert rows[0][-2:] == ["GPU(Mode)", "CLUSTER"]
    assert rows[2] == ["a", "10.0.0.1", "worker", "NotReady", "8", "0", "topology", "south"]
    assert "say which with --cluster" in convoy("top", "node", "a", "-d").err
    assert convoy("top", "node", "c").code == 3


def test_top_node_has_a_column_for_what_best_effort_pods_have_where_there_are_any(server, convoy):
    gpus = {"allocatable": 8, "requested": 6, "reclaimable": 4}
    server.page("nodes/", node("a", 6, gpus=gpus), node("b", 2))
    rows = [line.split() for line in convoy("top", "node").out.splitlines()]
    assert rows[0][-2:] == ["GPU(Allocated)", "GPU(Reclaimable)"]
    assert (rows[1][-2:], rows[2][-2:]) == (["6", "4"], ["2", "0"])


def test_prune_deletes_only_what_has_ended_long_enough_ago(server, convoy):
    ended = {"state": "Failed", "created_at": ago(11 * 3600)}
    spared = [
        job("new", state="Succeeded", created_at=ago(60)),
        job("waits", state="Queued", created_at=ago(99 * 3600)),
        job("sleeps", state="Suspended", created_at=ago(99 * 3600)),
        job("going", **ended, deleting_at=ago(1)),
    ]
    server.page("jobs/", *spared, job("old", id=OTHER_ID, **ended))
    server.on(f"jobs/{OTHER_ID}/", None, method="DELETE")
    assert convoy("prune", "--since", "10h").out == "Delete pytorchjob old with Age 11h\n"
    assert [each.path for each in server.seen if each.method == "DELETE"] == [f"/api/v1/jobs/{OTHER_ID}/"]
    server.page("jobs/", *spared)
    assert convoy("prune", "--since", "10h").out == "No job need to be deleted\n"
    for nonsense in ("soon", "0s"):
        assert f"--since: '{nonsense}'" in convoy("prune", "--since", nonsense).err


@pytest.mark.parametrize(("note", "deleted"), [("llama", True), ("registry-password", False), (None, False)])
def test_delete_removes_the_secret_that_was_made_for_the_job_and_no_other(server, convoy, note, deleted):
    annotations = {"convoy.dev/ssh-secret": note} if note else {}
    item = job(**ET, manifest={"metadata": {"annotations": annotations}})
    server.page("jobs/", item)
    server.on(f"jobs/{JOB_ID}/", item)
    server.on(f"jobs/{JOB_ID}/", None, method="DELETE")
    server.page("dependents/", {"id": OTHER_ID, "kind": "Secret", "namespace": "default", "name": "llama"},
                {"id": JOB_ID, "kind": "Secret", "namespace": "default", "name": "registry-password"})  # fmt: skip
    server.on(f"dependents/{OTHER_ID}/", None, method="DELETE")
    assert convoy("delete", "llama", "--type", "etjob").out == "The training job llama has been deleted successfully\n"
    paths = [each.path for each in server.seen if each.method == "DELETE"]
    assert paths == [f"/api/v1/jobs/{JOB_ID}/", *([f"/api/v1/dependents/{OTHER_ID}/"] if deleted else [])]


def test_the_gpus_of_each_pod_are_named_where_the_node_reports_them(server, arena):
    item = job(status={"phase": "Scaling"})
    server.page("jobs/", item)
    server.on(f"jobs/{JOB_ID}/", item)
    server.page(
        f"jobs/{JOB_ID}/pods/",
        pod("llama-master-0", "master"),
        pod("llama-worker-0", "worker", node="", phase="Running"),
    )
    taken = [("default", "llama-master-0"), ("default", "llama-master-0"), ("vision", "llama-master-0"), ("", "")]
    gpus = [{"index": i, "namespace": namespace, "pod": name} for i, (namespace, name) in enumerate(taken)]
    server.on("gpus/north/gpu-0/", {"topology": True, "gpus": gpus})
    event = {"type": "Normal", "reason": "Started", "message": "it runs", "last_at": ago(130)}
    server.page(f"jobs/{JOB_ID}/events/", event)
    rows = [line.split() for line in arena("get", "llama", "-g", "-e").stdout.splitlines()]
    assert ["Status:", "SCALING"] in rows
    assert ["llama-master-0", "gpu-0", "1", "0,1", "N/A", "N/A"] in rows
    assert ["llama-worker-0", "N/A", "1", "N/A", "N/A", "N/A"] in rows
    assert ["Allocated/Requested", "GPUs", "of", "Job:", "1/3"] in rows
    assert ["pytorchjob/llama", "Normal", "2m", "[Started]", "it", "runs"] in rows
    rows = [line.split() for line in arena("top", "job", "llama").stdout.splitlines()]
    assert ["llama-master-0", "Running", "1", "gpu-0", "0,1", "N/A", "N/A"] in rows


def test_no_job_is_deleted_if_one_of_the_names_is_unknown(server, arena):
    server.on(
        "jobs/",
        lambda: {"count": 1, "results": [job()]} if server.seen[-1].query["name"] == "llama" else {"results": []},
    )
    said = arena("delete", "llama", "whisper")
    assert said.returncode == 3 and "there is no job 'whisper'" in said.stderr
    assert {each.method for each in server.seen} == {"GET"}


def test_flags_of_logs_that_are_not_supported_are_refused_by_name(server, arena):
    said = arena("logs", "llama", "--since=10m")
    assert said.returncode == 2 and "--since is not supported" in said.stderr and not server.seen


def test_the_program_replaces_no_other_and_can_be_removed(convoy):
    (convoy.home / "bin").mkdir()
    other = convoy.home / "bin" / "arena"
    other.write_text("#!/bin/sh\n")
    said = convoy("alias", "arena", "--dir", "bin")
    assert said.code == 4 and "is another program" in said.err
    other.unlink()
    other.symlink_to(os.devnull)
    assert convoy("alias", "arena", "--dir", "bin").code == 4
    other.unlink()
    assert convoy("alias", "arena", "--dir", "bin").code == convoy("alias", "arena", "--dir", "bin").code == 0
    assert convoy("alias", "arena", "--dir", "bin", "--remove").out == "bin/arena removed\n" and not other.exists()


def test_the_program_imports_nothing_from_where_it_is_called(server, arena, convoy):
    (convoy.home / "frontend.py").write_text("raise SystemExit('imported')")
    (convoy.home / "typer.py").write_text("raise SystemExit('imported')")
    server.page("jobs/")
    said = arena("list")
    assert (said.returncode, said.stderr) == (0, "")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-5, "0s"), (59.9, "59s"), (60, "1m"), (7199, "1h"), (2 * 86_400, "2d"), (400 * 86_400, "1y")],
)
def test_durations_have_one_unit(seconds, shown):
    assert views.duration(seconds) == shown
