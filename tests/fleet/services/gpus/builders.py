"""Exporters of a simulated API server that has no kubelet, and a round of reading them."""

from datetime import datetime
from typing import Any

import pytest
from django.utils import timezone

from fleet.kube.resources import PODS
from fleet.services.gpus import scraping
from simulator.apiserver import ApiServer
from simulator.node.gpu_exporters import NAME, NAMESPACE
from tests.support.members import add_node, api, with_namespace


def add_exporter(server: ApiServer, node: str, namespace: str = NAMESPACE, **fields: Any) -> None:
    """``fields``: of its metadata."""
    with_namespace(api(server), namespace)
    metadata = {"name": f"{NAME}-{node}", "namespace": namespace, "labels": {"app": NAME}, **fields}
    spec = {"nodeName": node, "containers": [{"name": NAME, "image": "i"}]}
    api(server).create(PODS.path(namespace), {"metadata": metadata, "spec": spec})
    path = PODS.path(namespace, metadata["name"], "status")
    api(server).merge_patch(path, {"status": {"phase": "Running"}})


def add_gpu_node(server: ApiServer, name: str, gpus: int = 2) -> None:
    add_node(server, name, gpus)
    add_exporter(server, name)


def be_unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits of time are such that a busy machine keeps them."""
    monkeypatch.setattr(scraping, "_ANSWER_S", 120.0)
    monkeypatch.setattr(scraping, "_BUDGET_S", 600.0)


def read(now: datetime | None = None) -> int:
    """Reads the members that are due, and waits for it; how many that were."""
    threads = scraping.start(now or timezone.now())
    for thread in threads:
        thread.join(600)
        assert not thread.is_alive()
    return len(threads)
