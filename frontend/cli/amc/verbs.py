"""``kubectl amc logs``, ``top`` and ``delete``: what is done with objects of a cluster besides looking at them."""

from __future__ import annotations

import sys
from argparse import Namespace as Arguments

from frontend.cli.amc import get, rows, run
from frontend.cli.amc.fleet import Failure, Member, Object
from frontend.cli.amc.metrics import cores, mebibytes, share
from frontend.cli.problems import usage

METRICS = "/apis/metrics.k8s.io/v1beta1"


def logs(arguments: Arguments) -> int:
    """Of one container, as the pod wrote them; followed until the pod ends or the person leaves."""
    kind, names = get.split(arguments.pod, [])
    if names and kind not in ("pod", "pods", "po"):
        raise usage(f"logs are those of pods, not of {kind}")
    this = run.start(arguments)
    member, served, item = this.one("pods", names[0] if names else kind)
    wanted = {
        "container": arguments.container,
        "follow": "true" if arguments.follow else "",
        "previous": "true" if arguments.previous else "",
        "timestamps": "true" if arguments.timestamps else "",
        "tailLines": "" if arguments.tail is None else str(arguments.tail),
        "sinceSeconds": "" if arguments.since is None else str(int(arguments.since)),
    }
    metadata = item["metadata"]
    path = served.path(metadata["namespace"], metadata["name"]) + "/log"
    with member.stream(path, {key: text for key, text in wanted.items() if text}) as chunks:
        for chunk in chunks:
            this.screen.bytes(chunk)
    return 0


def delete(arguments: Arguments) -> int:
    kind, names = get.split(arguments.kind, arguments.names)
    if not names:
        raise usage("say which object to delete by its name")
    this = run.start(arguments)
    for name in names:
        member, served, item = this.one(kind, name)
        metadata = item["metadata"]
        if rows.ours(metadata):
            copy = f"{served.shown}/{name}"
            warning = (
                f"warning: the fleet created {copy} there and will create it again: delete it at the fleet instead"
            )
            this.screen.note(warning, style="yellow")
        path = served.path(metadata.get("namespace", ""), name)
        member.delete(path, {"propagationPolicy": "Background"})
        this.screen.line(f'{served.shown} "{name}" deleted from cluster {member.name}')
    return 0


def top(arguments: Arguments) -> int:
    """What is used now, as far as the clusters measure it."""
    nodes = arguments.what in ("node", "nodes", "no")
    this = run.start(arguments)
    shown = this.gather(_nodes if nodes else lambda member: _pods(member, this.namespace))
    spaced = not nodes and not this.namespace
    headers = ["NAME", "CLUSTER", "CPU(cores)", *["CPU%"] * nodes, "MEMORY(bytes)", *["MEMORY%"] * nodes]
    rows = [
        [*[space] * spaced, name, cluster, *cells]
        for cluster, found in shown.answers.items()
        for space, name, cells in found
    ]
    unmeasured = [name for name, problem in shown.failures.items() if getattr(problem, "code", 0) == 404]
    if not shown.answers and not unmeasured:
        raise run.worst(shown)
    if rows:
        this.screen.table([*["NAMESPACE"] * spaced, *headers], rows)
    for name in unmeasured:
        this.screen.note(f"error: Metrics API not available in cluster {name}: it runs no metrics server", style="red")
    refused = [each for each in shown.failures.values() if isinstance(each, Failure) and each.code in (401, 403)]
    for line in dict.fromkeys(map(str, refused)):
        sys.stderr.write(line + "\n")
    return 0 if rows or not shown.failures else 1


Line = tuple[str, str, list[str]]


def _nodes(member: Member) -> list[Line]:
    used = member.items(f"{METRICS}/nodes", {})
    known = {each["metadata"]["name"]: each.get("status") or {} for each in member.items("/api/v1/nodes", {})}
    return [("", each["metadata"]["name"], _beside(each, known.get(each["metadata"]["name"], {}))) for each in used]


def _beside(each: Object, status: Object) -> list[str]:
    """Used, and how much of what the node offers that is."""
    usage_, offered = each.get("usage") or {}, status.get("allocatable") or {}
    cpu, memory = str(usage_.get("cpu", "0")), str(usage_.get("memory", "0"))
    return [
        cores([cpu]),
        share(cpu, str(offered.get("cpu", ""))),
        mebibytes([memory]),
        share(memory, str(offered.get("memory", ""))),
    ]


def _pods(member: Member, namespace: str) -> list[Line]:
    inside = f"/namespaces/{namespace}" if namespace else ""
    usage = []
    for each in member.items(f"{METRICS}{inside}/pods", {}):
        usages = [container.get("usage") or {} for container in each.get("containers") or []]
        cpu, memory = [str(one.get("cpu", "0")) for one in usages], [str(one.get("memory", "0")) for one in usages]
        metadata = each["metadata"]
        usage.append((str(metadata.get("namespace", "")), str(metadata["name"]), [cores(cpu), mebibytes(memory)]))
    return usage
