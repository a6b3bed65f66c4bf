"""How `fleet.limits` counts the requests of this door, and how it refuses them: as an API server does."""

import json
from urllib.parse import parse_qsl

from fleet.kube.requests.status import KubeError
from fleet.kube.server.documents import OPEN
from fleet.kubeapi import pod_logs, pod_streams
from fleet.kubeapi.proxy import cluster_of
from fleet.limits.callers import Scope
from fleet.limits.limited import Sort

_REASONS = {414: "RequestURITooLong", 431: "RequestHeaderFieldsTooLarge"}


def sort(scope: Scope) -> Sort:
    path = scope["path"]
    if path.rstrip("/") in OPEN:
        return Sort.PROBE
    if cluster_of(path) or pod_logs.pod_of(scope["method"], path) or pod_streams.stream_path(path):
        return Sort.STREAM
    query = scope["query_string"]
    if scope["method"] == "GET" and b"watch" in query:
        asked = dict(parse_qsl(query.decode("latin-1"), max_num_fields=100)) if query.count(b"&") < 100 else {}
        return Sort.WATCH if asked.get("watch") in ("1", "true", "True") else Sort.REQUEST
    return Sort.REQUEST


def refusal(status: int, message: str, after_s: int) -> tuple[bytes, bytes]:
    details = {"retryAfterSeconds": after_s} if status == 429 else None
    refused = KubeError(status, message, reason=_REASONS.get(status, ""), details=details)
    return b"application/json", json.dumps(refused.as_status()).encode()
