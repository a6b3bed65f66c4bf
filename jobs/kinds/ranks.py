"""Hands to a member, and through it to the training process, which node each rank of a role belongs on. Pure.

Kinds number the pods of a role from 0 and make that the rank (RANK, TF_CONFIG's index, the hostfile's line), so the n-th node
of the list is rank n's. A scheduler may follow the list; a runtime may sort by it, for it finds itself in it by its node.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from fleet.core import units
from jobs.kinds import node_affinity
from jobs.kinds.base import Kind, Manifest, set_metadata

RANKS = "convoy.dev/ranks"
"""``node-a*2 node-b``: ranks 0 and 1 on node-a, 2 on node-b."""
GPU_SETS = "convoy.dev/gpu-sets"
"""``node-a=4,5 node-b=6``: the GPUs for the gang's pods on each node, in the order of their ranks."""
LINKED = "aliyun.com/gpu"
GROUP, VISIBLE = "topology.kubernetes.io/gpu-group", "topology.kubernetes.io/gpu-visible"
"""What device plugins read and write on a pod: the indices of its own GPUs, and of those it may see."""
LONGEST = 16 * 1024
"""Characters of a list that every pod carries; a longer one is a file from a ConfigMap."""
LONGEST_FILE = 900 * 1024
"""Characters of all lists of a gang in one ConfigMap, which holds 1 MiB."""
FOLDER = "/etc/convoy/ranks"
_FILE, _VOLUME = "CONVOY_RANKS_FILE", "convoy-ranks"
_ENVIRONMENT = {"CONVOY_RANKS": f"metadata.annotations['{RANKS}']", "CONVOY_NODE": "spec.nodeName"}


def write(kind: Kind, body: Manifest, nodes: Mapping[str, Sequence[Sequence[Any]]]) -> dict[str, str]:
    """Onto the pods of every role that has ``[node, pods]`` runs, in place.

    Returns the lists, by role, that are too long for every pod: those pods expect them from the ConfigMap `config_map_name`.
    What is too long for that as well is not handed over.
    """
    long: dict[str, str] = {}
    for role, template in kind.templates(body):
        if not (runs := nodes.get(role)):
            continue
        text = " ".join(f"{node}*{pods}" if pods > 1 else str(node) for node, pods in runs)
        if len(text) <= LONGEST:
            set_metadata(template, "annotations", {RANKS: text})
            _show(template, _ENVIRONMENT)
        elif sum(map(len, long.values())) + len(text) <= LONGEST_FILE:
            long[role] = text
            _mount(template, config_map_name(body), role)
    return long


def config_map_name(body: Manifest) -> str:
    return f"{body['metadata']['name']}-convoy-ranks"


def _mount(template: Manifest, config_map: str, role: str) -> None:
    """The list of the role as a file, whose path the processes find in their environment."""
    spec = template.setdefault("spec", {})
    volumes = spec.get("volumes") or []
    spec["volumes"] = [*volumes, {"name": _VOLUME, "configMap": {"name": config_map}}]
    for container in spec.get("containers") or []:
        mounts = container.get("volumeMounts") or []
        container["volumeMounts"] = [*mounts, {"name": _VOLUME, "mountPath": FOLDER, "readOnly": True}]
        _add(container, {"name": _FILE, "value": f"{FOLDER}/{role}"})
    _show(template, {"CONVOY_NODE": _ENVIRONMENT["CONVOY_NODE"]})


def write_gpus(
    kind: Kind, body: Manifest, nodes: Mapping[str, Sequence[Sequence[Any]]], sets: Mapping[str, Sequence[int]]
) -> None:
    """Onto the pods of every role that has nodes: which GPUs of each node are for the gang.

    Device plugins read the indices of one pod's own GPUs, and of those it may see. A template says the same of all pods of its
    role, so that it has what they may see where they are on one node, and their own where that is all of the set.
    """
    with_gpus = {role for role, template in kind.templates(body) if _asks_linked(template)}
    pods_on: Counter[str] = Counter()
    for role in with_gpus:
        pods_on.update({node: pods for node, pods in nodes.get(role, ())})
    for role, template in kind.templates(body):
        runs = nodes.get(role, ())
        if role in with_gpus and len(runs) == 1 and (node := runs[0][0]) in sets:
            gpus = ",".join(map(str, sets[node]))
            set_metadata(template, "annotations", {VISIBLE: gpus, **({GROUP: gpus} if pods_on[node] == 1 else {})})
        node_names = dict.fromkeys(node for node, _ in nodes.get(role, ()) if node in sets)
        if text := " ".join(f"{node}={','.join(map(str, sets[node]))}" for node in node_names):
            set_metadata(template, "annotations", {GPU_SETS: text})


def _asks_linked(template: Manifest) -> bool:
    return bool(units.pod_request(template.get("spec") or {}).get(LINKED))


def pin(kind: Kind, body: Manifest, key: str, values: Sequence[str]) -> None:
    """Keeps all pods on nodes whose label has one of these values, beside whatever they ask of nodes themselves."""
    for _, template in kind.templates(body):
        spec = template.setdefault("spec", {})
        if len(values) == 1:
            spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), key: values[0]}
            continue
        node_affinity.require(spec, {"key": key, "operator": "In", "values": list(values)})


def _show(template: Manifest, fields: Mapping[str, str]) -> None:
    """To the processes, as environment."""
    for container in (template.get("spec") or {}).get("containers") or []:
        for name, path in fields.items():
            _add(container, {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})


def _add(container: Manifest, variable: Manifest) -> None:
    """A name that the person uses is the person's."""
    env = container.get("env") or []
    if all(each.get("name") != variable["name"] for each in env):
        container["env"] = [*env, variable]
