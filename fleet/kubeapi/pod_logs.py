"""Logs of pods at the fleet: which pod a path names, what its member is asked for it, and what is kept of an ended pod's.

The stream from a member, its audit and its limits are the proxy's (`fleet.kubeapi.proxy`).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from fleet.core.members.log_text import Selection
from fleet.db import clock
from fleet.errors import ConvoyError, InvalidInput, NotFound
from fleet.kube.resources import PODS
from fleet.kube.server.request import Request
from fleet.kubeapi import auditing
from fleet.kubeapi.proxy import Admitted
from fleet.models import Cluster, EndedPod
from fleet.services.authorization import access
from fleet.services.logs import archive
from fleet.services.logs.archive import Text
from fleet.services.members import member_objects, proxying

_LONGEST_S = 100 * 366 * 86400
_PATH = re.compile(rf"{PODS.root}/namespaces/([^/]+)/pods/([^/]+)/log/?")


def pod_of(method: str, path: str) -> tuple[str, str] | None:
    """Namespace and name of the pod whose log is read; None for every other request."""
    match = _PATH.fullmatch(path) if method == "GET" else None
    return (match[1], match[2]) if match else None


def admit(asked: Request, namespace: str, name: str, user_of: Callable[[Request], Any]) -> Admitted:
    """What the pod's cluster is asked. The caller's right is asked for before the pod is looked up."""
    user = user_of(asked)
    call, cluster = proxying.log_of(namespace, name), ""
    try:
        access.require(user, access.READ, PODS.kind, namespace)
        pod = member_objects.pod_meant(namespace, name)
        if pod is None:
            raise NotFound(f'pods "{name}" not found')
        call, cluster = proxying.log_of(namespace, pod.name), pod.cluster.name
        proxying.require(user, call)
        return Admitted(user, proxying.find(cluster), call)
    except ConvoyError as e:
        auditing.refused(asked, cluster, call, user, e.status, e.message)
        raise


def kept(asked: Request, namespace: str, name: str, user_of: Callable[[Request], Any], *, is_away: bool) -> Text | None:
    """The kept log, for a pod whose cluster cannot be asked any more; None when it can be asked, or nothing is kept.

    ``is_away`` when the cluster was asked and gave no answer. Rights and audit are those of a log that is read live.
    """
    user = user_of(asked)
    call = proxying.log_of(namespace, name)
    if not access.may(user, access.READ, PODS.kind, namespace):
        return None
    ended = _ended(namespace, name, is_away=is_away)
    if ended is None:
        return None
    line = auditing.begun(asked, ended.cluster_name, replace(call, name=ended.name), user)
    try:
        text = archive.text_of(
            ended, _selection(asked), container=asked.query.get("container", ""), previous=asked.truth("previous")
        )
    except ConvoyError as e:
        auditing.ended(line, e.status, e.message)
        raise
    auditing.ended(line, 200)
    return text


def _ended(namespace: str, name: str, *, is_away: bool) -> EndedPod | None:
    pod = member_objects.pod_meant(namespace, name)
    if pod is None:
        return archive.pod_meant(namespace, name)
    return archive.pod_of(pod) if is_away or pod.cluster.state != Cluster.State.READY else None


def _selection(asked: Request) -> Selection:
    tail, limit = asked.query.get("tailLines", ""), asked.query.get("limitBytes", "")
    return Selection(
        tail_lines=int(tail) if tail.isdecimal() else None,
        since=_since(asked.query, clock.now()),
        timestamps=asked.truth("timestamps"),
        limit_bytes=int(limit) if limit.isdecimal() else None,
    )


def _since(query: Mapping[str, str], now: datetime) -> datetime | None:
    seconds, at = query.get("sinceSeconds", ""), query.get("sinceTime", "")
    if seconds.isdecimal():
        return now - timedelta(seconds=min(int(seconds), _LONGEST_S))
    try:
        moment = datetime.fromisoformat(at) if at else None
    except ValueError as e:
        raise InvalidInput(f"sinceTime: {at[:80]!r} is not a time of RFC 3339, such as 2026-11-23T08:00:00Z") from e
    return moment.replace(tzinfo=moment.tzinfo or UTC) if moment else None
