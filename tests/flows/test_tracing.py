"""Traces: every step of a job's life is a span of one trace, sent to a collector over OTLP/HTTP."""

import os
import subprocess
import sys
from datetime import timedelta
from functools import partial

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from environ import Env
from structlog.testing import capture_logs

from deploy.config import traces
from fleet import tracing
from fleet.errors import InvalidInput
from jobs.models import Work
from jobs.services.dispatch import dispatcher
from tests.support.otlp import attributes, collector
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
STEPS = ("job.submit", "job.queue", "job.schedule", "job.dispatch", "job.start")


@pytest.fixture
def received(monkeypatch, settings):
    """The collector of this process, whose SDK is set up for the test and shut down after it."""
    with collector() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.endpoint)
        settings.CONVOY_TRACING = traces.is_on(Env())
        tracing.provider.cache_clear()
        yield found
        tracing.provider().shutdown()
    tracing.provider.cache_clear()


def flushed(received, name):
    tracing.provider().force_flush()
    return received.named(name)


def test_it_joins_the_steps_of_a_job_from_submission_to_running_in_one_trace(received, world):
    world.member("north", 8)
    world.apply(POLICY, pytorch_job("llama"))
    world.expect("llama", "Running")
    world.until(lambda: flushed(received, "job.start"), "the start is recorded")
    version, trace, first, _ = world.job("llama").trace.split("-")
    spans = {name: received.named(name)[-1] for name in STEPS}
    assert version == "00" and {span.trace_id.hex() for span in received.spans} == {trace}
    assert {name: span.parent_span_id.hex() for name, span in spans.items()} == {
        name: "" if name == "job.submit" else first for name in STEPS
    }
    starts = [spans[name].start_time_unix_nano for name in STEPS]
    assert starts == sorted(starts) and all(s.start_time_unix_nano <= s.end_time_unix_nano for s in received.spans)
    assert attributes(spans["job.submit"])["convoy.job"] == "llama"
    assert attributes(spans["job.dispatch"]) == {
        "convoy.cluster": "north", "convoy.attempt": 1, "convoy.result": "done",
    }  # fmt: skip
    assert received.services == {"convoy"}


def test_it_shows_a_dispatch_that_failed_as_an_error_and_its_repetition_in_the_same_trace(received, unswept):
    member = unswept.member("north", 8)
    member.faults.error_rate = 1.0
    unswept.apply(POLICY, pytorch_job("llama"))
    unswept.until(lambda: flushed(received, "job.dispatch"), "a try is recorded")
    assert received.named("job.dispatch")[0].status.message == "MemberAway"
    member.faults.error_rate = 0.0
    work = Work.objects.get()
    dispatcher.push(work.pk, lambda: timezone.now() + timedelta(minutes=1))
    *_, last = flushed(received, "job.dispatch")
    assert not last.status.message and attributes(last)["convoy.result"] == "done"
    assert {span.trace_id for span in received.spans} == {bytes.fromhex(unswept.job("llama").trace.split("-")[1])}


def test_it_records_nothing_of_a_submission_that_was_refused(received, world):
    with pytest.raises(InvalidInput):
        world.apply(pytorch_job("llama"), pytorch_job("Not A Name"))
    assert not flushed(received, "job.submit")


def test_it_stores_no_context_while_tracing_is_off(world, settings):
    world.member("north", 8)
    world.apply(POLICY, pytorch_job("llama"))
    assert world.expect("llama", "Running").trace == "" and tracing.begin("job.submit").context == ""


@pytest.mark.parametrize(
    "variables, on",
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://collector/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_SDK_DISABLED": "true"}, False),
    ],
    ids=["nothing", "endpoint", "endpoint of traces", "disabled"],
)
def test_it_is_on_where_an_endpoint_is_set(monkeypatch, variables, on):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert traces.is_on(Env()) is on


def test_it_refuses_an_endpoint_that_is_no_http_address(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")
    with pytest.raises(ImproperlyConfigured, match="OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318"):
        traces.is_on(Env())


def test_it_works_without_the_sdk_and_logs_what_to_install(monkeypatch, settings):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    settings.CONVOY_TRACING = True
    tracing.provider.cache_clear()
    with capture_logs() as lines:
        assert tracing.begin("job.submit").context == ""
    tracing.provider.cache_clear()
    assert [line["event"] for line in lines] == [
        "tracing is off: install convoy[tracing], or unset OTEL_EXPORTER_OTLP_ENDPOINT"
    ]


def test_it_loads_no_exporter_while_it_is_off():
    code = "import django, sys; django.setup(); sys.exit('opentelemetry.exporter' in sys.modules)"
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "deploy.config.testing"}
    run = partial(subprocess.run, [sys.executable, "-c", code], timeout=180, check=False)
    assert run(env=env).returncode == 0
    assert run(env={**env, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}).returncode == 1
