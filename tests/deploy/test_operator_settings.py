"""Settings of the operator are read once, refused by name when they make no sense, and documented as they are."""

import os
import re
import subprocess
import sys
from dataclasses import fields

import pytest
from django.core.exceptions import ImproperlyConfigured

from deploy.config import operator, operator_docs
from fleet.core.operator_settings import names


def test_it_takes_the_defaults_when_nothing_is_set():
    read = operator.read_all({})
    assert (read.failover.max_attempts, read.scheduler.lease_s, read.retention.journal_lines) == (6, 30.0, 100_000)


def test_it_reads_every_setting_from_its_variable():
    for cls in operator.CLASSES.values():
        for known in (known for known in fields(cls) if "spec" in known.metadata):
            spec, value = (
                known.metadata["spec"],
                known.default + 1 if known.default + 1 <= known.metadata["spec"].most else 0,
            )
            part = next(name for name, of in operator.CLASSES.items() if of is cls)
            assert getattr(getattr(operator.read_all({spec.env: str(value)}), part), known.name) == value


@pytest.mark.parametrize(
    ("name", "text", "remedy"),
    [
        ("CONVOY_CLAIM_S", "-5", "a number from 15 to 600: correct it, or unset it for 30"),
        ("CONVOY_MAX_ATTEMPTS", "0", "a whole number from 1 to 1000"),
        ("CONVOY_MAX_ATTEMPTS", "2.5", "a whole number"),
        ("CONVOY_HEARTBEAT_GRACE_S", "abc", "a number from 0.5 to 3600"),
        ("CONVOY_HEARTBEAT_GRACE_S", "nan", "a number"),
        ("CONVOY_DISRUPTION_SHARE", "1.5", "a number from 0 to 1"),
    ],
)
def test_it_names_the_bad_setting_its_value_and_the_remedy(name, text, remedy):
    with pytest.raises(ImproperlyConfigured) as refused:
        operator.read_all({name: text})
    assert f"{name}={text!r} is not {remedy}" in str(refused.value)


def test_gpu_readings_are_off_or_not_more_often_than_they_can_be_fresh():
    assert [operator.read_all({"CONVOY_GPU_READ_S": text}).gpus.interval_s for text in ("0", "10")] == [0, 10]
    with pytest.raises(ImproperlyConfigured, match="CONVOY_GPU_READ_S='4' is not a number from 10 to 3600, or 0"):
        operator.read_all({"CONVOY_GPU_READ_S": "4"})


def test_it_names_all_bad_settings_at_once():
    with pytest.raises(ImproperlyConfigured, match="CONVOY_MAX_ATTEMPTS.*CONVOY_DATABASE_POOL"):
        operator.read_all({"CONVOY_MAX_ATTEMPTS": "x", "CONVOY_DATABASE_POOL": "0"})


def test_a_bad_setting_stops_the_start(tmp_path):
    environ = {**os.environ, "CONVOY_HOME": str(tmp_path), "CONVOY_EVICTIONS_PER_MINUTE": "many"}
    started = subprocess.run(
        [sys.executable, "-c", "import deploy.config.settings"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert started.returncode != 0
    last = started.stderr.strip().splitlines()[-1]
    assert "CONVOY_EVICTIONS_PER_MINUTE='many' is not a whole number from 1" in last


def test_the_documentation_has_every_setting_as_it_is():
    page = operator_docs.PAGE.read_text()
    assert page == operator_docs.written(page)
    documented = set(re.findall(r"`(CONVOY_[A-Z_]+)`", page))
    assert names(operator.CLASSES.values()) <= documented
