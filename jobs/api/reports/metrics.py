"""The fleet's numbers for Prometheus, in a fixed number of queries. Labels are bounded: never a job's name."""

import ipaddress
from collections.abc import Iterable, Iterator

from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from fleet.api import supply
from fleet.api.http.exposition import counted
from fleet.api.http.problems import problem
from fleet.api.sign_in.authentication import TokenAuthentication
from fleet.db import clock
from fleet.models import Cluster
from fleet.services.authorization import access
from fleet.services.operations import lease_requests
from jobs.api.reports import accounting_metrics, queue_metrics
from jobs.models import Job, Work
from jobs.services.gpus import usage


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """For scrapers on this machine, and for tokens of a fleet admin."""
    if not _is_local(request) and (refused := _refused(request)):
        return refused
    registry = CollectorRegistry()
    registry.register(Numbers())
    registry.register(counted())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class Numbers(Collector):
    def collect(self) -> Iterable[Metric]:
        clusters = supply.attach(Cluster.objects.defer("access"))
        yield _counts("convoy_clusters", "Member clusters", Cluster.State.values, [c.state for c in clusters])
        yield _jobs()
        yield _works()
        yield queue_metrics.pending()
        yield from queue_metrics.resources()
        yield from _amounts(clusters)
        yield from _gpu_use()
        yield from _cycles()
        yield from accounting_metrics.families(clock.now())


def _counts(name: str, help_text: str, states: Iterable[str], values: list[str]) -> Metric:
    family = GaugeMetricFamily(name, help_text, labels=["state"])
    for state in states:
        family.add_metric([state], values.count(state))
    return family


def _jobs() -> Metric:
    counted = dict(Job.objects.order_by().values_list("state").annotate(Count("pk")))
    family = GaugeMetricFamily("convoy_jobs", "Jobs", labels=["state"])
    for state in Job.State:
        family.add_metric([state], counted.get(state, 0))
    return family


def _works() -> Metric:
    counted = dict(Work.objects.order_by().values_list("state").annotate(Count("pk")))
    family = GaugeMetricFamily("convoy_works", "Copies of jobs, in or for members", labels=["state"])
    for state in Work.State:
        family.add_metric([state], counted.get(state, 0))
    return family


def _cycles() -> Iterator[Metric]:
    progress = lease_requests.progress(lease_requests.SCHEDULER)
    age = GaugeMetricFamily(
        "convoy_scheduler_last_successful_cycle_age_seconds",
        "Time since a scheduling cycle was last completed; it grows while nothing is requested",
        labels=[],
    )
    if progress.completed_s is not None:
        age.add_metric([], progress.completed_s)
    yield age
    yield GaugeMetricFamily(
        "convoy_scheduler_unserved_request_age_seconds",
        "Time for which requests for a scheduling cycle have waited without one being completed; 0: none waits",
        value=progress.unserved_s,
    )


def _amounts(clusters: Iterable[Cluster]) -> Iterator[Metric]:
    now = clock.now()
    gpus = GaugeMetricFamily("convoy_gpus", "GPUs of a member", labels=["cluster", "kind"])
    nodes = GaugeMetricFamily("convoy_nodes", "Nodes of a member", labels=["cluster", "kind"])
    silence = GaugeMetricFamily("convoy_cluster_silence_seconds", "Time since a member answered", labels=["cluster"])
    circuits = GaugeMetricFamily(
        "convoy_member_circuit_open",
        "1 while a member leaves dispatches unanswered and gets only probes",
        labels=["cluster"],
    )
    for cluster in clusters:
        amounts: supply.Supply = cluster.supply  # type: ignore[attr-defined]  # set by fleet.api.supply
        for kind, total in amounts.gpus.items():
            gpus.add_metric([cluster.name, kind], total)
        for kind, count in amounts.nodes.items():
            nodes.add_metric([cluster.name, kind], count)
        circuits.add_metric([cluster.name], cluster.circuit_opened_at is not None)
        if cluster.last_heartbeat:
            silence.add_metric([cluster.name], (now - cluster.last_heartbeat).total_seconds())
    yield from (gpus, nodes, silence, circuits)


def _gpu_use() -> Iterator[Metric]:
    """A cluster without readings has no value, rather than 0."""
    use = GaugeMetricFamily(
        "convoy_gpu_utilization_ratio",
        "Share of the time in which the GPUs of a member computed anything, the mean over those that are measured",
        labels=["cluster"],
    )
    measured = GaugeMetricFamily("convoy_gpus_measured", "GPUs of a member with a recent reading", labels=["cluster"])
    for cluster in usage.of_clusters(clock.now()):
        measured.add_metric([cluster.cluster], cluster.measured)
        if cluster.utilization is not None:
            use.add_metric([cluster.cluster], cluster.utilization / 100)
    yield from (use, measured)


def _is_local(request: HttpRequest) -> bool:
    """A proxy on this machine forwards requests of other machines."""
    if "HTTP_X_FORWARDED_FOR" in request.META or "HTTP_FORWARDED" in request.META:
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


def _refused(request: HttpRequest) -> HttpResponse | None:
    try:
        authenticated = TokenAuthentication().authenticate(Request(request))
    except AuthenticationFailed as e:
        authenticated, why = None, str(e.detail)
    else:
        why = "metrics need a bearer token of a fleet admin"
    if authenticated is None:
        response = problem(401, why)
        response["WWW-Authenticate"] = 'Bearer realm="convoy"'
        return response
    if not access.may(authenticated[0], access.READ, "Metrics"):
        return problem(403, access.refusal(authenticated[0], access.READ, "Metrics").message)
    return None
