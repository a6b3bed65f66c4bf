"""Adds the node check to a copy whose job, or override policy, asks for it (annotation convoy.dev/node-check).

Each pod of the gang gets an init container of its own image that runs `convoy_runtime.nodecheck`. The module travels in a
ConfigMap, because an image need not have it; the pods find each other by a headless Service that has their addresses before
they are ready. Both are created after the copy, which owns them, so that the member removes them with it; pods wait for them.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from fleet.kube.resources import CONFIG_MAPS, SERVICES
from fleet.member.client import MemberClient
from fleet.models import Identity
from fleet.services.members import signing
from jobs.core.failover.node_check import CONTAINER, NodeCheck, parse_node_check
from jobs.core.manifest_fields import Faults
from jobs.kinds.base import Kind, Manifest, set_metadata
from jobs.models import Work
from jobs.services.dispatch.members import member_objects

LABEL = "convoy.dev/node-check"
"""Of the pods that check each other: the name of their Service."""
_CODE, _STATE = "/opt/convoy/node-check", "/opt/convoy/node-check-state"
_FAILED = 86
"""`convoy_runtime.nodecheck.FAILED`: the one exit code that keeps a pod from its training."""
_JOIN_S = 300.0
_START = f"""\
import sys, traceback
code = 0
try:
    sys.path.insert(0, {_CODE!r})
    from convoy_runtime.nodecheck import main
    code = main(sys.argv[1:])
except BaseException:  # also SystemExit: of arguments that another version does not know
    traceback.print_exc()
sys.exit({_FAILED} if code == {_FAILED} else 0)
"""
"""An image that cannot run the check trains without it."""
_SHELL = """\
command -v python3 >/dev/null || { echo "the image has no python3: its node is not checked"; exit 0; }
exec python3 -c "$@"
"""
_COPIED = ("image", "imagePullPolicy", "env", "envFrom", "resources", "securityContext", "volumeMounts")
"""What the check has of the container that trains, so that it sees the same devices and network."""


def add_check(kind: Kind, body: Manifest, work: Work, now: datetime, *, is_share: bool) -> tuple[str, str]:
    """Changes ``body`` in place. Returns why its nodes are not checked although it asks for that, and the name of what its
    pods expect (`send_check`).
    """
    wanted = parse_node_check(body["metadata"].get("annotations"), Faults())
    if wanted is NodeCheck.OFF:
        return "", ""
    if is_share:
        return "it is divided, and a failed check would not end its share", ""
    counts = {role.name: role.replicas for role in kind.read(body).roles}
    templates = _checked(kind, body)
    nodes = sum(counts.get(role, 0) for role, _ in templates)
    if not templates:
        return f"the pods of a {work.kind} take no init container", ""
    if nodes < 2:
        return "it has one pod, and a check takes two", ""
    name = _name(work)
    arguments = ["--service", f"{name}.{work.namespace}.svc", "--nodes", str(nodes), "--key", _key(work)]
    arguments += ["--join-s", str(_JOIN_S), "--until", str(now.timestamp() + _JOIN_S)]
    arguments += ["--verdict", f"{_STATE}/verdict", *(["--slow-fails"] if wanted is NodeCheck.FAULTY_OR_SLOW else [])]
    for _, template in templates:
        set_metadata(template, "labels", {LABEL: name})
        _add_container(template["spec"], name, arguments)
    return "", name


def send_check(client: MemberClient, owner: Manifest, name: str, work: Work) -> None:
    """Creates what the init containers need, for the copy that owns it. Nothing without a name.

    In the fleet's own name: the content is the fleet's, and the author need not be allowed to create such objects.
    """
    if not name:
        return
    meta = owner["metadata"]
    reference = {"apiVersion": work.api_version, "kind": work.kind, "name": meta["name"], "uid": meta["uid"]}
    labels = member_objects.labels(Identity.here(), str(work.job_uid), work.attempt)
    metadata = {"name": name, "namespace": work.namespace, "labels": labels, "ownerReferences": [reference]}
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {LABEL: name}}
    code = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(_sources())}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
    for resource, made in ((CONFIG_MAPS, code), (SERVICES, service)):
        member_objects.create(client, resource, made, str(work.job_uid), work.attempt)


def _name(work: Work) -> str:
    return f"convoy-check-{hashlib.sha256(f'{work.job_uid}/{work.attempt}'.encode()).hexdigest()[:16]}"


def _key(work: Work) -> str:
    """What only the pods of the attempt know, so that no other pod takes part."""
    return signing.sign(work.cluster, "node-check", str(work.job_uid), str(work.attempt))


def _checked(kind: Kind, body: Manifest) -> list[tuple[str, Manifest]]:
    """The templates of the gang; of a gang with devices those that have some: a launcher without is no node that trains."""
    gang = [(role, template) for role, template in kind.gang_templates(body) if _containers(template)]
    with_devices = [(role, template) for role, template in gang if any(map(_devices, _containers(template)))]
    return with_devices or gang


def _containers(template: Manifest) -> list[Manifest]:
    containers = (template.get("spec") or {}).get("containers") or []
    return [each for each in containers if each.get("image")]


def _devices(container: Mapping[str, Any]) -> bool:
    stated = container.get("resources") or {}
    return any("/" in name for part in ("limits", "requests") for name in stated.get(part) or {})


def _add_container(spec: Manifest, name: str, arguments: list[str]) -> None:
    containers = _containers({"spec": spec})
    trains = next(filter(_devices, containers), containers[0])
    copied = {field: trains[field] for field in _COPIED if field in trains}
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    mounts: list[Manifest] = [{"name": f"{CONTAINER}-state", "mountPath": _STATE}]
    mounts += [{"name": CONTAINER, "mountPath": _CODE, "readOnly": True}]
    added = {
        **copied,
        "name": CONTAINER,
        "command": ["sh", "-c", _SHELL, "sh", _START, *arguments],
        "env": [*[each for each in copied.get("env") or [] if each.get("name") != "POD_IP"], address],
        "volumeMounts": [*(copied.get("volumeMounts") or []), *mounts],
    }
    spec["initContainers"] = [added, *(spec.get("initContainers") or [])]
    code = {"name": name, "items": [{"key": file, "path": f"convoy_runtime/{file}"} for file in _sources()]}
    volumes = [{"name": CONTAINER, "configMap": code}, {"name": f"{CONTAINER}-state", "emptyDir": {}}]
    spec["volumes"] = [*(spec.get("volumes") or []), *volumes]


@cache
def _sources() -> Mapping[str, str]:
    """The modules by the names of their files."""
    return {file.name: file.read_text() for file in files("convoy_runtime").iterdir() if file.name.endswith(".py")}
