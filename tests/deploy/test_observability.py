"""The alert rules and the dashboard: valid by Prometheus' own tool, and about metrics and labels that are really served."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.metrics import MetricWrapperBase

from fleet import metrics as fleet_metrics
from jobs import metrics as jobs_metrics
from jobs.api.reports.metrics import Numbers

FOLDER = Path(__file__).parent.parent.parent / "deploy" / "observability"
NAME = re.compile(r"(convoy_\w+)(?:\{([^}]*)\})?")
GROUPED = re.compile(r"\bby \(([^)]*)\)")
BY_PROMETHEUS = {"le", "instance"}


def served() -> dict[str, set[str]]:
    """The labels of every series, by the name it has in a query."""
    names: dict[str, set[str]] = {}
    for module in (fleet_metrics, jobs_metrics):
        for metric in vars(module).values():
            if isinstance(metric, MetricWrapperBase):
                suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}[metric._type]
                names |= {metric._name + suffix: set(metric._labelnames) for suffix in suffixes}
    return names | {family.name: set(family._labelnames) for family in Numbers().collect()}


def expressions() -> Iterator[str]:
    yield from re.findall(r"expr: (?:>-\n)?((?:.|\n)+?)\n +(?:for|labels):", (FOLDER / "alerts.yaml").read_text())
    for panel in json.loads((FOLDER / "dashboard.json").read_text())["panels"]:
        yield from (target["expr"] for target in panel.get("targets", []))


@pytest.mark.django_db
def test_it_asks_only_for_metrics_and_labels_that_are_served():
    names, used = served(), set()
    for expression in expressions():
        for name, matchers in NAME.findall(expression):
            used.add(name)
            assert name in names, f"{name} is not served"
            labels = set(re.findall(r"(\w+)[=!]~?\"?=?", matchers)) | {
                label.strip() for group in GROUPED.findall(expression) for label in group.split(",")
            }
            known = set().union(*(names[other] for other, _ in NAME.findall(expression) if other in names))
            assert labels - BY_PROMETHEUS <= known, f"{labels - known} are no labels in {expression}"
    assert len(used) > 20


@pytest.mark.django_db
def test_every_metric_is_on_the_dashboard_or_in_an_alert():
    shown = {name for expression in expressions() for name, _ in NAME.findall(expression)}
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown}
    unseen = {re.sub(r"_(bucket|sum|count)$", "", name) for name in served()} - families
    assert unseen <= {"convoy_works", "convoy_queue_max_quota"}, "add a panel, or drop the metric"


@pytest.mark.skipif(
    not shutil.which("promtool"), reason="promtool is not installed: Debian's package prometheus has it"
)
@pytest.mark.parametrize("command", [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]])
def test_promtool_accepts_the_rules_and_their_cases(command):
    ran = subprocess.run(["promtool", *command], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
