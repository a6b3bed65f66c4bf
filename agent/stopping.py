"""Stops the copies that depend on the Lease: by the switch of their kind, and by their pods where no operator ends these.

Idempotent, and safe beside a second agent: each write names the version that was read.
"""

import contextlib
import copy as copies
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from structlog import get_logger

from fleet.core.members import fence, marks
from fleet.kube.resources import PODS
from fleet.member.client import MemberClient, Object
from fleet.member.errors import MemberChanged, MemberDenied, MemberError, MemberExists, MemberMissing
from jobs.kinds import registry
from jobs.kinds.base import FINISHED, Kind

log = get_logger(__name__)

AT_ONCE = 16
_ENDED = ("Succeeded", "Failed")


def stop_all(client: MemberClient, stamp: str) -> int:
    """Stops every copy that depends on the Lease; returns how many requests for that were made. 0: all have stopped.

    ``stamp`` is the time that is written on what is stopped, for people to read.
    """
    with ThreadPoolExecutor(AT_ONCE, "stop") as threads:
        return sum(threads.map(partial(_stop, client, stamp), _running(client)))


def _running(client: MemberClient) -> Iterator[tuple[Kind, Object]]:
    selector = {"labelSelector": f"{fence.LABEL}={fence.DEPENDS}"}
    for kind in registry.everything():
        try:
            for page in client.pages(kind.resource.path(), selector):
                for copy in page.get("items") or []:
                    if kind.read_status(copy.get("status") or {}, 0).phase not in FINISHED:
                        yield kind, copy
        except MemberMissing:
            continue
        except MemberDenied as e:
            log.error("copies are not listed", kind=kind.resource.kind, error=e.message)


def _stop(client: MemberClient, stamp: str, target: tuple[Kind, Object]) -> int:
    kind, copy = target
    meta = copy["metadata"]
    try:
        suspended = _suspend(client, kind, copy, stamp)
        return suspended + (0 if kind.ends_pods else _end_pods(client, kind, copy))
    except MemberMissing:
        return 1
    except MemberError as e:
        log.error("not stopped", kind=kind.resource.kind, copy=f"{meta['namespace']}/{meta['name']}", error=e.message)
        return 1


def _suspend(client: MemberClient, kind: Kind, copy: Object, stamp: str) -> int:
    """Also of a copy that was resumed after it had been stopped: nothing but the fleet resumes copies."""
    meta = copy["metadata"]
    suspended = copies.deepcopy(copy)
    kind.suspend(suspended, True)
    if suspended == copy and fence.STOPPED in (meta.get("annotations") or {}):
        return 0
    patch: Object = {"metadata": {field: meta[field] for field in ("uid", "resourceVersion")}}
    kind.suspend(patch, True)
    patch["metadata"]["annotations"] = {**(patch["metadata"].get("annotations") or {}), fence.STOPPED: stamp}
    with contextlib.suppress(MemberChanged):  # the next pass sees what it is now
        client.merge_patch(kind.resource.path(meta["namespace"], meta["name"]), patch)
        if command := kind.suspend_command(copy):
            with contextlib.suppress(MemberExists):
                client.create(command[0].path(meta["namespace"]), command[1])
        log.warning("stopped", kind=kind.resource.kind, copy=f"{meta['namespace']}/{meta['name']}")
    return 1


def _end_pods(client: MemberClient, kind: Kind, copy: Object) -> int:
    """Deletes the copy's pods with their own grace period; their operator makes no others for a suspended copy.

    The role that the others need to save their work (`Kind.ended_last`) goes when they are gone.
    """
    meta = copy["metadata"]
    labels = meta.get("labels") or {}
    selector = ",".join(f"{name}={labels.get(name, '')}" for name in (marks.JOB_UID, marks.ATTEMPT))
    pods = client.list(PODS.path(meta["namespace"]), {"labelSelector": selector})["items"]
    alive = [pod for pod in pods if (pod.get("status") or {}).get("phase") not in _ENDED]
    first = [pod for pod in alive if kind.pod_role(pod["metadata"].get("labels") or {})[0] != kind.ended_last]
    for pod in first or alive:
        if not pod["metadata"].get("deletionTimestamp"):
            with contextlib.suppress(MemberMissing, MemberChanged):
                path = PODS.path(meta["namespace"], pod["metadata"]["name"])
                client.delete(path, uid=pod["metadata"]["uid"])
    return len(alive)
