"""``kubectl amc logs``, ``top`` and ``delete``: the verbs besides ``get`` and ``describe``."""

from __future__ import annotations

import sys
from argparse import Namespace as Arguments

from frontend.cli.amc import get, rows, run
from frontend.cli.amc.fleet import Failure, Member, Object
from frontend.cli.amc.metrics import cores, mebibytes, share
from frontend.cli.problems import usage

METRICS = "/apis/metrics.k8s.io/v1beta1"


def logs(arguments: Arguments) -> int:
    """Prints the log of one container; with ``--follow`` until the pod ends or the command is interrupted."""
    kind, names = get.split(arguments.pod, [])
    if names and kind not in ("pod", "pods", "po"):
        raise usage(f"only pods have logs, not {kind}")
    this = run.start(arguments)
    member, resource, item = this.one("pods", names[0] if names else kind)
    params = {
        "container": arguments.container,
        "follow": "true" if arguments.follow else "",
        "previous": "true" if arguments.previous else "",
        "timestamps": "true" if arguments.timestamps else "",
        "tailLines": "" if arguments.tail is None else str(arguments.tail),
        "sinceSeconds": "" if arguments.since is None else str(int(arguments.since)),
    }
    metadata = item["metadata"]
    path = resource.path(metadata["namespace"], metadata["name"]) + "/log"
    with member.stream(path, {key: text for key, text in params.items() if text}) as chunks:
        this.screen.log(chunks)
    return 0


def delete(arguments: Arguments) -> int:
    kind, names = get.split(arguments.kind, arguments.names)
    if not names:
        raise usage("give the name of the object to delete")
    this = run.start(arguments)
    for name in names:
        member, resource, item = this.one(kind, name)
        metadata = item["metadata"]
        if rows.ours(metadata):
            copy = f"{resource.shown}/{name}"
            warning = (
                f"warning: the fleet created {copy} there and will create it again: delete it at the fleet instead"
            )
            this.screen.note(warning, style="yellow")
        path = resource.path(metadata.get("namespace", ""), name)
        member.delete(path, {"propagationPolicy": "Background"})
        this.screen.line(f'{resource.shown} "{name}" deleted from cluster {member.name}')
    return 0


def top(arguments: Arguments) -> int:
    """Prints the current resource use, from the metrics servers of the clusters."""
    nodes = arguments.what in ("node", "nodes", "no")
    this = run.start(arguments)
    gathered = this.gather(_nodes if nodes else lambda member: _pods(member, this.namespace))
    has_namespace = not nodes and not this.namespace
    headers = ["NAME", "CLUSTER", "CPU(cores)", *["CPU%"] * nodes, "MEMORY(bytes)", *["MEMORY%"] * nodes]
    rows = [
        [*[namespace] * has_namespace, name, cluster, *cells]
        for cluster, lines in gathered.answers.items()
        for namespace, name, cells in lines
    ]
    unmeasured = [name for name, problem in gathered.failures.items() if getattr(problem, "code", 0) == 404]
    if not gathered.answers and not unmeasured:
        raise run.worst(gathered)
    if rows:
        this.screen.table([*["NAMESPACE"] * has_namespace, *headers], rows)
    for name in unmeasured:
        this.screen.note(f"error: Metrics API not available in cluster {name}: it runs no metrics server", style="red")
    failures = [failure for failure in gathered.failures.values() if isinstance(failure, Failure)]
    for line in dict.fromkeys(str(failure) for failure in failures if failure.code in (401, 403)):
        sys.stderr.write(line + "\n")
    return 0 if rows or not gathered.failures else 1


Line = tuple[str, str, list[str]]


def _nodes(member: Member) -> list[Line]:
    metrics = {item["metadata"]["name"]: item for item in member.items(f"{METRICS}/nodes", {})}
    statuses = {node["metadata"]["name"]: node.get("status") or {} for node in member.items("/api/v1/nodes", {})}
    return [("", name, _node_cells(item, statuses.get(name, {}))) for name, item in metrics.items()]


def _node_cells(metrics: Object, status: Object) -> list[str]:
    """The node's use of CPU and memory, each with its share of what the node offers."""
    usage_, offered = metrics.get("usage") or {}, status.get("allocatable") or {}
    cpu, memory = str(usage_.get("cpu", "0")), str(usage_.get("memory", "0"))
    return [
        cores([cpu]),
        share(cpu, str(offered.get("cpu", ""))),
        mebibytes([memory]),
        share(memory, str(offered.get("memory", ""))),
    ]


def _pods(member: Member, namespace: str) -> list[Line]:
    inside = f"/namespaces/{namespace}" if namespace else ""
    lines = []
    for pod in member.items(f"{METRICS}{inside}/pods", {}):
        containers = [container.get("usage") or {} for container in pod.get("containers") or []]
        cpu, memory = ([str(used.get(resource, "0")) for used in containers] for resource in ("cpu", "memory"))
        metadata = pod["metadata"]
        lines.append((str(metadata.get("namespace", "")), str(metadata["name"]), [cores(cpu), mebibytes(memory)]))
    return lines
