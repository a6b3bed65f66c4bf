"""A job of a leaf of the quota tree, and the quota it is charged to."""

import yaml

from tests.support.books import GPU
from tests.support.world import pytorch_job

WHOLE = {"cpu": 10**5, "memory": "900000Gi", GPU: 6, "kube-queue/max-jobs": 1000}

LABEL = "quota.scheduling.alibabacloud.com/name"


def job(name: str, leaf: str, **annotations: str) -> str:
    body = yaml.safe_load(pytorch_job(name))
    body["metadata"] |= {"labels": {LABEL: leaf}, "annotations": {"convoy.dev/checkpoint-grace": "60", **annotations}}
    return yaml.safe_dump(body)
