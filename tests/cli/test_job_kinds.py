"""The server says which kinds of jobs there are: the command line repeats none of them, and asks no more than it must."""

import json
import subprocess
import sys

import pytest

from tests.cli.builders import KINDS, ROOT, job


def asked(server) -> int:
    return sum(request.path.endswith("/schemas/") for request in server.seen)


def cache(convoy):
    return convoy.home / ".config" / "convoy" / "kinds.json"


def test_it_asks_once_and_remembers(server, convoy):
    server.page("jobs/", job())
    for word in ("pytorchjobs", "tfjob", "sparkapp"):
        convoy("get", word)
    assert asked(server) == 1
    assert [each.query.get("kind") for each in server.seen if each.path.endswith("/jobs/")] == [
        "PyTorchJob",
        "TFJob",
        "SparkApplication",
    ]


def test_it_asks_nothing_for_what_is_no_kind_of_job(server, convoy):
    server.page("jobs/")
    server.page("clusters/")
    convoy("get", "jobs")
    convoy("get", "clusters")
    assert asked(server) == 0


def test_it_finds_a_kind_that_the_server_has_learned_since(server, convoy):
    server.page("jobs/")
    convoy("get", "pytorchjobs")
    new = {
        "api_version": "kubeflow.org/v1",
        "kind": "JAXJob",
        "plural": "jaxjobs",
        "short_names": [],
        "category": "job",
    }
    server.page("schemas/", *KINDS, new)
    assert convoy("get", "jaxjob").code == 0
    assert server.seen[-1].query["kind"] == "JAXJob"
    assert asked(server) == 2


def test_it_names_the_kinds_there_are_when_there_is_no_such_kind(server, convoy):
    said = convoy("get", "sailboats")
    assert said.code == 2 and "there is no kind 'sailboats'" in said.err
    assert "tfjobs" in said.err and "clusters" in said.err and "configmaps" not in said.err


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        json.dumps({"format": 0, "servers": {"URL": [{"kind": "PyTorchJob"}]}}),
        json.dumps({"format": 1, "servers": {"URL": [{"kind": "PyTorchJob"}, 7]}}),
        json.dumps({"format": 1, "servers": {"URL": "PyTorchJob"}}),
        json.dumps({"format": 1, "servers": []}),
    ],
)
def test_it_replaces_a_file_that_it_cannot_use(server, convoy, content):
    server.page("jobs/")
    cache(convoy).parent.mkdir(parents=True)
    cache(convoy).write_text(content.replace("URL", server.url))
    assert convoy("get", "pytorchjobs").code == 0
    assert asked(server) == 1
    assert convoy("get", "tfjobs").code == 0
    assert asked(server) == 1


def test_it_works_where_nothing_can_be_remembered(server, convoy):
    server.page("jobs/")
    cache(convoy).mkdir(parents=True)
    said = [convoy("get", "pytorchjobs") for _ in range(2)]
    assert [each.code for each in said] == [0, 0], said
    assert asked(server) == 2
    assert list(cache(convoy).parent.iterdir()) == [cache(convoy)]


def test_it_knows_the_kinds_of_a_server_that_names_no_plurals(server, convoy):
    """As release 0.1 answers."""
    server.page("jobs/")
    old = [{key: each[key] for key in ("api_version", "kind")} for each in KINDS]
    server.on("schemas/", {"results": old})
    convoy("get", "tfjobs")
    assert server.seen[-1].query["kind"] == "TFJob"
    assert convoy("get", "configmaps").code == 2


def test_it_keeps_the_kinds_of_several_servers_apart(server, convoy):
    server.page("jobs/")
    convoy("get", "pytorchjobs")
    content = json.loads(cache(convoy).read_text())
    content["servers"]["https://other.example"] = [content["servers"].pop(server.url)[0]]
    cache(convoy).write_text(json.dumps(content))
    convoy("get", "pytorchjobs")
    assert asked(server) == 2
    assert set(json.loads(cache(convoy).read_text())["servers"]) == {server.url, "https://other.example"}


def test_completion_offers_remembered_kinds_and_sends_nothing(server, convoy):
    convoy("get", "sailboats")
    sent = len(server.seen)
    script = (
        "import sys; from frontend.cli import job_kinds; print(*job_kinds.completions(sys.argv[1]));"
        "assert not {'httpx', 'yaml'} & set(sys.modules)"
    )
    for typed, offered in (("tf", "tfjobs"), ("po", "pods policies"), ("vc", "vcjobs")):
        done = subprocess.run(
            [sys.executable, "-c", script, typed], capture_output=True, text=True, env=convoy.env, cwd=ROOT, timeout=180
        )
        assert (done.stdout.strip(), done.stderr) == (offered, "")
    assert len(server.seen) == sent
