"""The archive of logs in a bucket of a server nobody here wrote that checks signatures and rights: moto."""

import json
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from fleet.core.log_bucket import LogBucket
from fleet.services.logs import bucket
from fleet.services.logs.bucket import BucketFailed
from tests.clients.environments import environment
from tests.support.free_ports import free_port
from tests.support.kubectl import answers

pytestmark = pytest.mark.clients
UNCHECKED = "4"
"""Requests of the script, by which the bucket and its user come about."""


@pytest.fixture(scope="module")
def logs():
    programs = environment("s3") / "bin"
    port = free_port()
    env = {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": UNCHECKED}
    command = [programs / "moto_server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        until = time.monotonic() + 60
        while not answers(port):
            assert server.poll() is None and time.monotonic() < until
            time.sleep(0.1)
        script = [programs / "python", Path(__file__).with_name("make_bucket.py"), f"http://127.0.0.1:{port}"]
        done = subprocess.run(script, check=True, capture_output=True, text=True, timeout=120)
        key, secret = json.loads(done.stdout)
        yield LogBucket(f"http://127.0.0.1:{port}/convoy-logs/fleet%201", key, secret, "eu-central-1")
        server.terminate()


def test_it_keeps_objects_under_signatures_that_the_server_checks(logs):
    name, content = f"ab/{uuid4()}.0", os.urandom(300_000)
    assert bucket.read(logs, name) is None
    bucket.write(logs, name, b"of a try that was broken off")
    bucket.write(logs, name, content)
    assert bucket.read(logs, name) == content
    bucket.delete(logs, name)
    bucket.delete(logs, name)
    assert bucket.read(logs, name) is None


@pytest.mark.parametrize("field", ["secret_key", "access_key"])
def test_it_says_what_the_server_refuses_and_no_secret(logs, field):
    wrong = replace(logs, **{field: "hunter2"})
    for ask in (lambda: bucket.write(wrong, "a", b"x"), lambda: bucket.read(wrong, "a")):
        with pytest.raises(BucketFailed, match="the bucket answered 403 ") as e:
            ask()
        assert "hunter2" not in str(e.value) and logs.secret_key not in str(e.value)


def test_a_bucket_that_is_not_there_is_a_fault_and_no_log_that_is_gone(logs):
    missing = replace(logs, url=logs.url.replace("convoy-logs", "convoy-lost"))
    with pytest.raises(BucketFailed, match="the bucket answered 40"):
        bucket.read(missing, "a")
    with pytest.raises(BucketFailed, match="does not answer"):
        bucket.read(replace(logs, url="http://127.0.0.1:9/logs"), "a")
