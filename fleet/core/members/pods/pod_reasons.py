"""Why a pod is not what it should be, in the words of kubectl, read out of a manifest that may be unsound."""

from collections.abc import Mapping
from typing import Any

from fleet.core.members.typed_values import mapping, mappings, text
from fleet.kube.tables import init_container

Manifest = Mapping[str, Any]
_COMMON = ("", "Completed", "ContainerCreating", "PodInitializing")
"""Reasons of containers with which nothing is wrong."""
_INIT = "Init:"


def why(spec: Manifest, status: Manifest) -> tuple[str, str]:
    """The most specific reason and its message: the pod's own, an init container that is not done, a container that waits or
    has died, why it is not scheduled. Empty: none is known.
    """
    if own := text(status.get("reason")):
        return own, str(status.get("message") or "")
    return _of_init_containers(spec, status) or _of_containers(status) or _of_scheduling(status) or ("", "")


def is_of_init_containers(reason: str) -> bool:
    return reason.startswith(_INIT)


def _of_init_containers(spec: Manifest, status: Manifest) -> tuple[str, str] | None:
    statuses = mappings(status.get("initContainerStatuses"))
    sound = {"containerStatuses": mappings(status.get("containerStatuses")), "initContainerStatuses": statuses}
    sound["conditions"] = mappings(status.get("conditions"))
    try:
        word, stands = init_container(
            {"spec": {"initContainers": mappings(spec.get("initContainers"))}, "status": sound}
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return (word, _message(stands)) if word else None


def _message(each: Manifest) -> str:
    if not each:
        return ""
    state, last = mapping(each.get("state")), mapping(mapping(each.get("lastState")).get("terminated"))
    ended = mapping(state.get("terminated"))
    said = text(mapping(state.get("waiting")).get("message")) or text(ended.get("message"))
    code = ended.get("exitCode") or last.get("exitCode")
    how = said or (f"exit code {code}" if code else "runs" if "running" in state else "waits")
    return f"init container {text(each.get('name'))}: {how}"


def _of_containers(status: Manifest) -> tuple[str, str] | None:
    for container in mappings(status.get("containerStatuses")):
        state = mapping(container.get("state"))
        for kind in ("waiting", "terminated"):
            detail = mapping(state.get(kind))
            if (reason := text(detail.get("reason"))) not in _COMMON:
                code = f"exit code {detail['exitCode']}" if "exitCode" in detail else ""
                return reason, str(detail.get("message") or code)
    return None


def _of_scheduling(status: Manifest) -> tuple[str, str] | None:
    for condition in mappings(status.get("conditions")):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return text(condition.get("reason")), str(condition.get("message") or "")
    return None
