"""A fleet of two GPU models and a tree that promises by model, for the tests of flavors."""

import json

import pytest
import yaml
from django.utils import timezone

from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import GPU
from tests.support.world import pytorch_job

LABEL = "nvidia.com/gpu.product"


QUEUE = "quota.scheduling.alibabacloud.com/name"


TABLE = {"h100": {LABEL: "H100"}, "a100": {LABEL: "A100"}}


H100, A100 = "nvidia.com/gpu:h100", "nvidia.com/gpu:a100"


REST = {"cpu": 10**5, "memory": "900000Gi", "kube-queue/max-jobs": 1000}


def apply(gpus: dict, leaf: dict, table: dict | None = TABLE, **attributes: str) -> tuple[str, ...]:
    stated = {**attributes, **({"flavors": json.dumps(table)} if table else {})}
    root = quota("root", {**REST, **gpus}, {**REST, **gpus}, leaf, attributes=stated)
    return trees.apply(manifest(root), by="system", now=timezone.now()).warnings


def team(order: str = "h100,a100", **most: int) -> dict:
    high = {GPU: 16, **{f"{GPU}:{name}": amount for name, amount in most.items()}}
    fields = {"attributes": {"flavor-order": order}} if order else {}
    return quota("a", None, high, namespaces=["default"], **fields)


FLEET = {GPU: 16, H100: 8, A100: 8}


@pytest.fixture
def fleet():
    """Two clusters with eight GPUs each: of H100, and of A100."""
    clusters = [books.a_cluster(name) for name in ("north", "south")]
    for cluster, model in zip(clusters, ("H100", "A100"), strict=True):
        cluster.nodes.update(labels={LABEL: model})
    return clusters


def job(name: str, gpus: int = 2, queue: str = "") -> str:
    """Two pods of so many GPUs together, of a queue named by label."""
    body = yaml.safe_load(pytorch_job(name, workers=1, gpus=gpus // 2))
    body["metadata"] |= {"labels": {QUEUE: queue}} if queue else {}
    return yaml.safe_dump(body)
