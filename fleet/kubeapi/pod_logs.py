"""Logs of pods at the fleet: which pod a path names, and what its member is asked for it.

The stream itself, its audit and its limits are the proxy's (`fleet.kubeapi.proxy`).
"""

import re
from collections.abc import Callable
from typing import Any

from fleet.errors import ConvoyError, NotFound
from fleet.kube.resources import PODS
from fleet.kube.server.request import Request
from fleet.kubeapi import auditing
from fleet.kubeapi.proxy import Admitted
from fleet.services.authorization import access
from fleet.services.members import member_objects, proxying

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
