"""The format of log lines, as another process writes them: JSON with fields, readable text, and settings that are refused."""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import logging, logging.config, sys
from uvicorn import Config
from deploy.config import logs
Config("no:application", access_log=False)
logging.config.dictConfig(logs.configured(sys.argv[1], sys.argv[2]))
from structlog import get_logger
get_logger("jobs").info("preempted", job="a/b", attempt=2)
get_logger("jobs").debug("invisible")
logging.getLogger("uvicorn.error").warning("from a %s", "library")
logging.getLogger("uvicorn.access").info("GET /livez")
class Request:
    def __repr__(self):
        return "<POST /signin/l1nk-_A/>"
logging.getLogger("axes").warning("failure {path_info: %s}", "/signin/l1nk-_A/")
logging.getLogger("django.request").warning("Unauthorized: %s", "/signin/l1nk-_A/", extra={"request": Request()})
token = "hunter" + "2"
try:
    raise OSError("disk")
except OSError:
    logging.getLogger("x").exception("failed")
"""


def lines(*args: str) -> list[str]:
    ran = subprocess.run([sys.executable, "-c", SCRIPT, *args], capture_output=True, text=True, check=False)
    return ran.stderr.splitlines()


def test_it_writes_one_json_object_a_line_with_the_fields_of_the_event():
    first, second, *_, third = map(json.loads, lines("json", "INFO"))
    assert (first["event"], first["job"], first["attempt"]) == ("preempted", "a/b", 2)
    assert (first["logger"], first["level"]) == ("jobs", "info") and first["time"].endswith("Z")
    assert (second["event"], second["logger"], second["level"]) == ("from a library", "uvicorn.error", "warning")
    assert "OSError: disk" in third["exception"]


def test_it_writes_no_line_for_each_request():
    assert not [line for line in lines("json", "INFO") if "/livez" in line]


def test_it_writes_readable_text_for_people():
    first = lines("console", "INFO")[0]
    assert "preempted" in first and "job=a/b" in first and "attempt=2" in first and "{" not in first


@pytest.mark.parametrize("output", ["json", "console"])
def test_it_logs_no_sign_in_link_which_a_refused_request_does_not_use_up(output):
    written = "\n".join(lines(output, "INFO"))
    assert "Unauthorized: /signin/..." in written and "l1nk" not in written


@pytest.mark.parametrize("output", ["json", "console"])
def test_it_logs_an_error_without_the_values_of_variables(output):
    """They may be credentials, and to draw them costs a process seconds in which none of its threads moves."""
    written = "\n".join(lines(output, "INFO"))
    assert "OSError: disk" in written and "in <module>" in written
    assert "hunter2" not in written and "locals" not in written


@pytest.mark.parametrize(
    ("output", "level", "name"), [("xml", "INFO", "CONVOY_LOG_FORMAT"), ("json", "LOUD", "CONVOY_LOG_LEVEL")]
)
def test_it_refuses_what_it_does_not_know_by_the_name_of_the_setting(output, level, name):
    assert f"ValueError: {name} is " in lines(output, level)[-1]


def test_it_sums_the_counters_of_all_processes_of_one_folder(tmp_path):
    count = "from fleet import metrics; metrics.RECONCILE_ERRORS.labels('jobs.push').inc()"
    env = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", count], env=env, check=True)
    show = (
        "from prometheus_client import CollectorRegistry, generate_latest; from fleet.api.http.exposition import counted;"
        "r = CollectorRegistry(); r.register(counted()); print(generate_latest(r).decode())"
    )
    shown = subprocess.run([sys.executable, "-c", show], env=env, check=True, capture_output=True, text=True).stdout
    assert 'convoy_reconcile_errors_total{task="jobs.push"} 2.0' in shown
