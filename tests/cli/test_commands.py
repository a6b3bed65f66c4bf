"""What changes something, how runs end, and where the server and the token come from."""

import json
import os
import signal
import stat
import subprocess

import pytest

from tests.cli.builders import JOB_ID, TOKEN, job

APPLIED = {
    "results": [{"kind": "PyTorchJob", "namespace": "default", "name": "llama", "action": "created", "warnings": ["w"]}]
}


def test_it_sends_manifests_as_they_are(server, convoy):
    server.on("apply", APPLIED, method="POST")
    (convoy.home / "a.yaml").write_text("kind: A\n")
    said = convoy("apply", "-f", "a.yaml", "-f", "-", stdin="kind: B\n")
    assert (said.code, said.out) == (0, "pytorchjob/llama created\n")
    assert "warning: pytorchjob/llama: w" in said.err
    assert server.sent("POST").body == b"kind: A\n---\nkind: B"
    assert server.sent("POST").headers["Authorization"] == f"Bearer {TOKEN}"


def test_it_sends_a_directory_in_the_order_of_names(server, convoy):
    server.on("apply", APPLIED, method="POST")
    (convoy.home / "d").mkdir()
    for name in ("b.yml", "a.yaml", "notes.txt"):
        (convoy.home / "d" / name).write_text(f"kind: {name[0]}")
    convoy("apply", "-f", "d")
    assert server.sent("POST").body == b"kind: a\n---\nkind: b"


@pytest.mark.parametrize("verb", ["suspend", "resume"])
def test_it_suspends_and_resumes(server, convoy, verb):
    server.page("jobs/", job())
    server.on(f"jobs/{JOB_ID}/{verb}/", job(), method="POST")
    assert convoy(verb, "llama").code == 0


SIZE = {"worker": {"replicas": 4, "min": 2, "max": 8}}


def test_it_scales_in_by_the_words_of_arena(server, convoy):
    server.page("jobs/", job(size=SIZE, resize=None))
    smaller = {"worker": {**SIZE["worker"], "replicas": 3}}
    server.on(f"jobs/{JOB_ID}/resize/", job(size=smaller, resize=None), method="POST")
    answer = convoy("scalein", "pytorch", "--name", "llama", "--count", "1", "--timeout", "1m")
    assert answer.out == "pytorchjob/llama worker scaled from 4 to 3\n"
    assert json.loads(server.sent("POST").body) == {"role": "worker", "replicas": 3}


def test_it_says_why_a_job_has_not_grown_yet(server, convoy):
    growth = {"sizes": {"worker": 6}, "by": "ada", "at": "2026-01-01T00:00:00Z", "reason": {"message": "north is full"}}
    server.page("jobs/", job(size=SIZE, resize=None))
    server.on(f"jobs/{JOB_ID}/resize/", job(size=SIZE, resize=growth), method="POST")
    server.on(f"jobs/{JOB_ID}/", job(size=SIZE, resize=growth))
    answer = convoy("scaleout", "llama", "--count", "2")
    assert answer.out == "pytorchjob/llama worker is to grow from 4 to 6: north is full\n"
    answer = convoy("scaleout", "llama", "--count", "2", "--timeout", "1s")
    assert answer.code == 5 and "worker is 4, not 6, after 1s" in answer.err and "north is full" in answer.err


def test_it_deletes_a_job_by_kind_and_name(server, convoy):
    server.page("jobs/", job())
    server.on(f"jobs/{JOB_ID}/", job(), method="DELETE")
    assert convoy("delete", "pytorchjob", "llama").out == "pytorchjob/llama deleted\n"


def test_it_deletes_what_many_documents_name_in_pieces_and_says_so_after_each(server, convoy):
    gone = [{"kind": "PyTorchJob", "namespace": "default", "name": "llama", "action": "absent", "warnings": []}]
    server.on("delete", {"results": gone}, method="POST")
    documents = [f"---\nkind: PyTorchJob\nmetadata: {{name: j{number}}}\n" for number in range(120)]
    (convoy.home / "jobs.yaml").write_text("# all of them\n" + "".join(documents) + "---\n# the end\n")
    assert convoy("delete", "-f", "jobs.yaml").out == "pytorchjob/llama absent\n" * 3
    bodies = [each.body for each in server.seen if each.method == "POST"]
    assert [body.count(b"kind:") for body in bodies] == [50, 50, 20]
    assert b"".join(bodies) == "".join(documents).encode()


def test_it_prints_a_log_byte_for_byte(server, convoy):
    server.page("jobs/", job())
    server.on(f"jobs/{JOB_ID}/logs/", b"rank 0 step 1\n")
    assert convoy("logs", "-f", "llama", "--role", "worker", "--index", "1").out == "rank 0 step 1\n"
    assert server.seen[-1].query == {"role": "worker", "index": "1", "follow": "true"}


def test_it_waits_for_a_state(server, convoy):
    server.on("jobs/", lambda: {"count": 1, "results": [job(state="Queued" if len(server.seen) < 3 else "Running")]})
    assert convoy("wait", "llama", "--for", "Running", "--timeout", "20s").out == "llama is Running\n"


def test_it_says_when_waiting_took_too_long(server, convoy):
    server.page("jobs/", job(state="Queued"))
    said = convoy("wait", "llama", "--for", "Running", "--timeout", "0.1s")
    assert (said.code, said.err.splitlines()[0]) == (5, "error: llama is Queued, not Running, after 0s")


def test_it_joins_a_cluster_from_stdin(server, convoy):
    server.on("clusters/", {"name": "north", "state": "Ready", "version": "v1"}, method="POST", status=201)
    assert convoy("cluster", "join", "north", "--kubeconfig", "-", stdin="kind: Config").code == 0
    assert json.loads(server.sent("POST").body)["kubeconfig"] == "kind: Config"


def test_it_shows_every_wrong_field(server, convoy):
    faults = [{"field": "spec.replicas", "detail": "must be at least 0"}]
    server.refuse("apply", 422, "the manifest is not valid", method="POST", errors=faults)
    said = convoy("apply", "-f", "-", stdin="x: y")
    assert (said.code, said.out) == (1, "")
    assert said.err == "error: the manifest is not valid\n  spec.replicas: must be at least 0\n"


@pytest.mark.parametrize(("status", "code"), [(401, 1), (403, 1), (404, 3), (409, 4), (503, 1)])
def test_it_ends_with_a_code_scripts_can_rely_on(server, convoy, status, code):
    server.refuse("clusters/north/cordon/", status, "no", method="POST")
    assert convoy("cluster", "cordon", "north").code == code


def test_it_tells_wrong_usage_and_missing_objects_apart(server, convoy):
    server.page("jobs/")
    assert convoy("get", "unicorns").code == 2
    assert convoy("describe", "nobody").code == 3
    assert convoy("apply", "-f", "nowhere.yaml").code == 3


def test_it_has_a_hint_when_nobody_answers(convoy):
    said = convoy("get", "jobs", CONVOY_URL="http://127.0.0.1:1")
    assert said.code == 1
    assert "Traceback" not in said.err
    assert "hint:" in said.err


def test_it_ends_quietly_when_its_reader_goes_away(server, convoy):
    server.page("jobs/", *(job(f"job-{number}") for number in range(3000)))
    done = subprocess.Popen(
        convoy.command("get", "jobs"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=convoy.env, cwd=convoy.home
    )
    done.stdout.readline()
    done.stdout.close()
    assert done.stderr.read() == b""
    done.stderr.close()
    done.wait(60)


def test_it_ends_quietly_on_ctrl_c(server, convoy):
    server.page("jobs/", job())
    watching = subprocess.Popen(
        convoy.command("get", "jobs", "-w"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=convoy.env,
        # A test run in the background has it ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    watching.stdout.readline()
    os.kill(watching.pid, signal.SIGINT)
    assert (watching.communicate(timeout=120)[1], watching.returncode) == (b"", 130)


def test_it_saves_a_login_for_its_owner_only(server, convoy):
    server.on("me/", {"username": "alice"})
    assert convoy("login", server.url, "--token", "secret-token").code == 0
    path = convoy.home / ".config" / "convoy" / "config.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text()) == {"url": server.url, "token": "secret-token"}


def test_it_finds_what_up_wrote_and_sends_no_token_elsewhere(server, convoy):
    (convoy.home / ".convoy").mkdir()
    (convoy.home / ".convoy" / "cli.json").write_text(json.dumps({"url": server.url, "token": "of-up"}))
    server.page("jobs/")
    del convoy.env["CONVOY_URL"], convoy.env["CONVOY_TOKEN"]
    assert convoy("get", "jobs").code == 0
    assert server.seen[-1].headers["Authorization"] == "Bearer of-up"
    convoy("--server", server.url.replace("127.0.0.1", "localhost"), "get", "jobs")
    assert "Authorization" not in server.seen[-1].headers
