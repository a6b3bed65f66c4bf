"""One story through the real REST API: sign in with a password, submit, look, suspend, resume, delete."""

import pytest
from django.contrib.auth.models import User

from tests.cli.builders import ROOT, Convoy

DEMO = ROOT / "deploy" / "demo"
PASSWORD = "correct horse battery"


@pytest.mark.django_db(transaction=True)
def test_it_takes_a_job_through_its_life(live_server, tmp_path):
    User.objects.create_superuser("alice", password=PASSWORD)
    convoy = Convoy(tmp_path, live_server.url)
    del convoy.env["CONVOY_TOKEN"]
    assert convoy("get", "jobs").code == 1
    signed_in = convoy("login", live_server.url, "--username", "alice", stdin=PASSWORD + "\n")
    assert signed_in.out == f"signed in to {live_server.url} as alice\n", signed_in.err
    applied = convoy("apply", "-f", str(DEMO / "policy.yaml"), "-f", str(DEMO / "pytorchjob.yaml"))
    assert applied.out.splitlines() == ["propagationpolicy/example-policy created", "pytorchjob/pytorch-test created"]
    assert convoy("get", "policies", "-o", "name").out == "propagationpolicy/example-policy\n"
    assert "example-policy" in convoy("get", "jobs", "-o", "wide").out
    told = convoy("describe", "pytorchjob", "pytorch-test")
    assert "State:         Queued" in told.out, told.err
    assert convoy("suspend", "pytorch-test").code == 0
    assert convoy("suspend", "pytorch-test").code == 4
    assert convoy("wait", "pytorch-test", "--for", "Suspended").code == 0
    assert convoy("resume", "pytorch-test").code == 0
    for kind in ("clusters", "nodes", "bindings", "events", "pods"):
        assert convoy("get", kind).code == 0, kind
    assert convoy("top").code == 0
    assert convoy("delete", "pytorchjob", "pytorch-test").code == 0
    assert convoy("get", "job", "pytorch-test").code == 3
    assert convoy("delete", "policy", "example-policy").code == 0
