"""Listing and describing: columns for pipes, machine formats, filters, and what a job's story looks like."""

import json

import yaml

from tests.cli.builders import JOB_ID, ago, cluster, job

RESULT = "Binding has been scheduled successfully. Result: {north:0,[{master 1} {worker 2}]}"


def event(reason: str, message: str, age_s: float, **fields):
    at = ago(age_s)
    told = {"type": "Normal", "reason": reason, "message": message, "source": "default-scheduler", "count": 1}
    return told | {"first_at": at, "last_at": at} | fields


def test_it_lists_jobs_in_plain_columns(server, convoy):
    server.page("jobs/", job())
    header, row = convoy("get", "jobs").out.splitlines()
    assert header.split() == ["NAME", "KIND", "STATE", "CLUSTER", "PODS", "GPUS", "DURATION", "AGE"]
    assert row.split() == ["llama", "PyTorchJob", "Running", "north", "2/3", "3", "3h44m", "4h59m"]


def test_it_lists_the_size_alone_where_a_former_server_does_not_count_what_runs(server, convoy):
    former = {name: value for name, value in job().items() if name != "pods_running"}
    server.page("jobs/", former)
    assert convoy("get", "jobs").out.splitlines()[1].split()[4] == "3"


def test_it_lists_jobs_of_one_kind_in_one_namespace(server, convoy):
    server.page("jobs/")
    assert "No jobs found" in convoy("list", "-n", "vision").err
    convoy("get", "pytorchjobs", "-n", "vision")
    assert server.seen[-1].query == {"kind": "PyTorchJob", "namespace": "vision", "page_size": "200"}


def test_it_knows_batch_jobs_by_their_group(server, convoy):
    server.page("jobs/")
    convoy("get", "jobs.batch", "-A")
    assert server.seen[-1].query == {"kind": "Job", "group": "batch", "page_size": "200"}


def test_it_asks_which_job_is_meant_when_kinds_of_two_groups_share_the_name(server, convoy):
    twins = [job(kind="Job", api_version=version) for version in ("batch/v1", "batch.volcano.sh/v1alpha1")]
    server.page("jobs/", *twins)
    assert "say which: job.batch llama, vcjob llama" in convoy("describe", "llama").err
    server.on(f"jobs/{JOB_ID}/", twins[0])
    assert yaml.safe_load(convoy("get", "job.batch", "llama", "-o", "yaml").out)["api_version"] == "batch/v1"


def test_it_prints_namespaces_when_it_shows_all_of_them(server, convoy):
    server.page("jobs/", job(namespace="vision"))
    assert convoy("get", "jobs", "-A", "-o", "wide").out.splitlines()[1].split()[0] == "vision"


def test_it_reads_every_page(server, convoy):
    server.on("jobs/", {"count": 2, "results": [job("one")]})
    server.on("jobs/", lambda: {"count": 2, "results": [job(f"job-{len(server.seen)}")]})
    assert convoy("get", "jobs", "-o", "name").out.split() == ["pytorchjob/job-1", "pytorchjob/job-2"]


def test_it_selects_by_label(server, convoy):
    server.page("jobs/", job("llama"), job("whisper", labels={"team": "speech"}))
    assert convoy("get", "jobs", "-l", "team=speech", "-o", "name").out == "pytorchjob/whisper\n"


def test_it_prints_one_object_as_json_and_yaml(server, convoy):
    server.page("jobs/", job())
    server.on(f"jobs/{JOB_ID}/", job(manifest={"kind": "PyTorchJob"}))
    assert json.loads(convoy("get", "job", "llama", "-o", "json").out)["manifest"] == {"kind": "PyTorchJob"}
    assert yaml.safe_load(convoy("get", "pytorchjob", "llama", "-o", "yaml").out)["name"] == "llama"


def test_it_lists_clusters_with_their_free_gpus(server, convoy):
    server.page("clusters/", cluster(), cluster("south", cordoned=True))
    rows = convoy("cluster", "list").out.splitlines()
    assert rows[1].split()[:4] == ["north", "Ready", "4/4", "4/8"]
    assert "Ready,Cordoned" in rows[2]


def test_what_a_silent_cluster_has_free_is_not_known(server, convoy):
    server.page("clusters/", cluster(state="Unknown"))
    assert convoy("get", "clusters").out.splitlines()[1].split()[:4] == ["north", "Unknown", "?/4", "?/8"]


def test_pods_of_a_silent_cluster_are_shown_with_their_age(server, convoy):
    pod = {"name": "llama-0", "ready": "1/1", "phase": "Running", "restarts": 0, "created_at": ago(72020)}
    server.page("jobs/", job())
    server.on(f"jobs/{JOB_ID}/", job())
    for path in ("attempts", "events"):
        server.page(f"jobs/{JOB_ID}/{path}/")
    server.page(f"jobs/{JOB_ID}/pods/", pod | {"cluster": "north", "node": "n1", "stale_since": ago(72020)})
    assert "Running (20h ago)" in convoy("get", "pods", "llama").out
    assert "north does not answer: its pods are shown as they were 20h ago" in convoy("describe", "llama").out


def test_pods_are_worded_as_kubectl_does_and_their_messages_are_said_once(server, convoy):
    about = {"ready": "0/1", "phase": "Pending", "restarts": 0, "created_at": ago(60), "cluster": "north", "node": ""}
    stuck = {"reason": "Init:CrashLoopBackOff", "message": "init container fetch: exit code 3"}
    waits = {"reason": "Unschedulable", "message": "0/3 nodes are available"}
    pods = [
        about | stuck | {"name": "llama-0"},
        about | waits | {"name": "llama-1"},
        about | waits | {"name": "llama-2"},
    ]
    server.page("jobs/", job())
    server.on(f"jobs/{JOB_ID}/", job())
    for path in ("attempts", "events"):
        server.page(f"jobs/{JOB_ID}/{path}/")
    server.page(f"jobs/{JOB_ID}/pods/", *pods)
    words = [line.split()[2] for line in convoy("get", "pods", "llama").out.splitlines()[1:]]
    assert words == ["Init:CrashLoopBackOff", "Pending", "Pending"]
    described = convoy("describe", "llama").out
    assert "  llama-0: Init:CrashLoopBackOff: init container fetch: exit code 3\n" in described
    assert "  llama-1 and 1 more: Unschedulable: 0/3 nodes are available\n" in described


def test_it_lists_the_pods_of_a_job(server, convoy):
    server.page("jobs/", job())
    pod = {"name": "llama-master-0", "ready": "1/1", "phase": "Running", "restarts": 0, "created_at": ago(72020)}
    server.page(f"jobs/{JOB_ID}/pods/", pod | {"namespace": "default", "cluster": "north", "node": "n1"})
    words = convoy("get", "pods", "llama").out.splitlines()[1].split()
    assert words == ["llama-master-0", "1/1", "Running", "0", "20h", "north", "n1"]


def test_it_describes_a_job_with_unwrapped_events(server, convoy):
    binding = {"cluster": "north", "result": "{north:0,[{master 1} {worker 2}]}"}
    server.page("jobs/", job())
    server.on(f"jobs/{JOB_ID}/", job(binding=binding))
    server.on(f"jobs/{JOB_ID}/attempts/", [{"number": 1, "cluster": "north", "placed_at": ago(17960), "outcome": ""}])
    server.page(f"jobs/{JOB_ID}/pods/")
    server.page(f"jobs/{JOB_ID}/events/", event("ScheduleBindingSucceed", RESULT, 17960))
    told = convoy("describe", "pytorchjob", "llama").out
    events = told.partition("Events:\n")[2].splitlines()
    assert events[1] == f"  Normal   ScheduleBindingSucceed   4h59m   default-scheduler   {RESULT}"
    assert "Asks for:      3 nvidia.com/gpu, 3 cpu, 6Gi memory, 3 pods" in told


def test_it_tells_cluster_by_cluster_what_is_short(server, convoy):
    short = {
        "cluster": "south",
        "code": "NotEnoughFree",
        "message": "is short of 4 GPUs",
        "missing": {"nvidia.com/gpu": 4},
    }
    reason = {"code": "NoClusterFits", "message": "0/1 clusters fit", "clusters": [short]}
    queued = job(state="Queued", reason=reason, cluster=None, attempt=0, started_at=None)
    server.page("jobs/", queued)
    server.on(f"jobs/{JOB_ID}/", queued)
    server.on(f"jobs/{JOB_ID}/attempts/", [])
    server.page(f"jobs/{JOB_ID}/events/")
    told = convoy("describe", "llama").out
    assert "  south   NotEnoughFree   4 nvidia.com/gpu   is short of 4 GPUs" in told


def test_it_draws_how_full_the_fleet_is(server, convoy):
    server.page("clusters/", cluster(), cluster("south"))
    rows = convoy("top").out.splitlines()
    assert rows[1].split() == ["north", "Ready", "████████▒▒░░░░░░░░░░", "3", "1", "4", "8"]
    assert rows[3].split()[-4:] == ["6", "2", "8", "16"]


def test_it_prints_no_control_characters_of_others(server, convoy):
    server.page("jobs/", job(cluster="\x1b[2Jnorth"))
    assert "\x1b" not in convoy("get", "jobs").out


def test_it_describes_why_the_latest_attempt_failed_with_the_end_of_its_log(server, convoy):
    summary = "code: ValueError: bad shape (rank 3, train.py:88 in step)"
    excerpt = ['File "/app/train.py", line 88, in step', "ValueError: \x1b[2Jbad shape"]
    failed = {"cluster": "north", "placed_at": ago(17960), "outcome": "Failed", "cause": "CodeError"}
    first = {**failed, "number": 1, "diagnosis": {"category": "unknown", "summary": "unknown: gone", "message": "gone"}}
    second = {**failed, "number": 2, "diagnosis": {"category": "code", "summary": summary, "excerpt": excerpt}}
    server.page("jobs/", job())
    server.on(f"jobs/{JOB_ID}/", job(state="Failed", attempt=2))
    server.on(f"jobs/{JOB_ID}/attempts/", [first, second])
    server.page(f"jobs/{JOB_ID}/pods/")
    server.page(f"jobs/{JOB_ID}/events/")
    shown = convoy("describe", "llama").out
    assert f"Failure of attempt 2:\n  {summary}\n" in shown
    assert '  | File "/app/train.py", line 88, in step' in shown
    assert "\x1b" not in shown and "unknown: gone" not in shown


FACT = {"event": "Checkpoint", "at": ago(60), "pod": "llama-worker-0", "step": 40, "tier": "memory", "ok": True}


def test_it_lists_the_checkpoints_and_the_ranks_of_a_job(server, convoy):
    saved = {**FACT, "seconds": 0.029, "shards_done": 6, "shards_total": 8, "committed": False}
    disk = {**saved, "tier": "disk", "committed": True, "shards_total": None}
    pod = {"pod": "llama-worker-0", "node": "n1", "ranks": [8, 9], "world_size": 16, "restarts": None}
    server.page("jobs/", job())
    said = {
        "facts": [FACT],
        "checkpoints": [saved, disk],
        "ranks": [pod],
        "warnings": ["no log of llama-worker-1: gone"],
    }
    server.on(f"jobs/{JOB_ID}/", job())
    server.on(f"jobs/{JOB_ID}/runtime/", said)
    listed = convoy("ckpt", "list", "llama")
    assert listed.out.splitlines()[1].split()[:5] == ["40", "memory", "saved", "0.029", "6/8"]
    assert listed.out.splitlines()[2].split()[:5] == ["40", "disk", "committed", "0.029", "6/?"]
    assert "no log of llama-worker-1" in listed.err
    assert convoy("ranks", "llama").out.splitlines()[1].split() == ["llama-worker-0", "n1", "8,9", "16", "<none>"]
