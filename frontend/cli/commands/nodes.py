"""``convoy top node``: the nodes with their GPUs, how those are linked, and which pod uses which GPU. Printed as arena does."""

from collections.abc import Sequence

from frontend.cli import gpu_use, human
from frontend.cli.arena import views
from frontend.cli.client import Item, at
from frontend.cli.problems import missing, usage
from frontend.cli.session import Session

SWITCH = "ack.node.gpu.schedule"
ROLE = "node-role.kubernetes.io/"
RULE = "-" * 99
_MODES = {"topology": "topology", "share": "share", "cgpu": "share"}
_TYPES = {"topology": "GPUTopology", "share": "GPUShare", "exclusive": "GPUExclusive", "none": "none"}


def top(run: Session, names: Sequence[str], cluster: str, *, details: bool) -> None:
    """Prints the named nodes, or all nodes. With ``details``, a page for each."""
    nodes = _select(run.api.list("nodes/", {"cluster": cluster}), names, cluster, one_each=details)
    if not nodes:
        run.screen.note("No nodes found.")
    elif details:
        for number, node in enumerate(nodes):
            if number:
                run.screen.line()
            _print_page(run, node)
    else:
        _print_table(run, nodes)


def _select(nodes: list[Item], names: Sequence[str], cluster: str, *, one_each: bool) -> list[Item]:
    """The nodes of these names. A page of one node is not printed for its namesake in another cluster."""
    nodes = [node for node in nodes if cluster in ("", node["cluster"])]
    if not names:
        return nodes
    for name in names:
        clusters = [node["cluster"] for node in nodes if node["name"] == name]
        if not clusters:
            raise missing(f"there is no node {name}" + (f" in cluster {cluster}" if cluster else ""))
        if len(clusters) > 1 and one_each:
            raise usage(f"{name} is in {', '.join(clusters)}", "say which with --cluster")
    return [node for node in nodes if node["name"] in names]


def _print_table(run: Session, nodes: list[Item]) -> None:
    uses = _utilizations(run, {node["cluster"] for node in nodes})
    several = len({node["cluster"] for node in nodes}) > 1
    modes = len({_mode(node) for node in nodes} - {"none"}) > 1
    headers = ["NAME", "IPADDRESS", "ROLE", "STATUS", "GPU(Total)", "GPU(Allocated)"]
    best_effort = any(map(_reclaimable, nodes))
    headers += (
        ["GPU(Util)"] * bool(uses) + ["GPU(Reclaimable)"] * best_effort + ["GPU(Mode)"] * modes + ["CLUSTER"] * several
    )
    rows = [
        [
            *(node["name"], node.get("address") or views.NONE, _role(node), _status(node)),
            *(str(node["gpus"]["allocatable"]), str(node["gpus"]["requested"])),
            *[uses.get((node["cluster"], node["name"]), gpu_use.NONE)] * bool(uses),
            *[str(_reclaimable(node))] * best_effort,
            *([_mode(node)] * modes + [node["cluster"]] * several),
        ]
        for node in nodes
    ]
    for line in (*views.columns([headers, *rows]), RULE, "Allocated/Total GPUs In Cluster:", _share(nodes)):
        run.screen.line(line)


def _utilizations(run: Session, clusters: set[str]) -> dict[tuple[str, str], str]:
    """The mean over the GPUs of each node that is measured. Empty where none is."""
    return {
        (cluster, node["node"]): gpu_use.mean(node["gpus"])
        for cluster in sorted(clusters)
        for node in gpu_use.read(run.api, at("gpu-usage", "clusters", cluster), "nodes")
    }


def _reclaimable(node: Item) -> int:
    """GPUs of best-effort pods: their places may be taken back at any time. A server of before knows none."""
    return int(node["gpus"].get("reclaimable", 0))


def _share(nodes: list[Item]) -> str:
    total = sum(node["gpus"]["allocatable"] for node in nodes)
    used = sum(node["gpus"]["requested"] for node in nodes)
    return f"{used}/{total} ({100 * used / total if total else 0:.1f}%)"


def _role(node: Item) -> str:
    return ",".join(sorted(key.removeprefix(ROLE) for key in node["labels"] if key.startswith(ROLE))) or human.NONE


def _status(node: Item) -> str:
    return ("Ready" if node["ready"] else "NotReady") + (",SchedulingDisabled" if node["unschedulable"] else "")


def _mode(node: Item) -> str:
    if not node["gpus"]["allocatable"]:
        return "none"
    return _MODES.get(node["labels"].get(SWITCH, ""), "exclusive")


def _print_page(run: Session, node: Item) -> None:
    name, cluster, total = node["name"], node["cluster"], node["gpus"]["allocatable"]
    facts = {"Name": name, "Status": _status(node), "Role": _role(node), "Type": _TYPES[_mode(node)],
             "Address": node.get("address") or views.NONE, "Cluster": cluster}  # fmt: skip
    for label, value in facts.items():
        run.screen.line(f"{label + ':':<8} {value}")
    if not total:
        return
    run.screen.line()
    run.screen.line("Instances:")
    pods = [pod for row in run.api.get(at("gpus", cluster))["nodes"] if row["name"] == name for pod in row["pods"]]
    headers = ["NAMESPACE", "JOB", "ROLE", "INDEX", "GPU(Requested)"]
    for line in views.ruled(headers, [_pod(pod) for pod in pods]):
        run.screen.line(line)
    _print_use(run, cluster, name)
    _print_links(run, run.api.get(at("gpus", cluster, name)))
    run.screen.line()
    run.screen.line("GPU Summary:")
    run.screen.line(f"  Total GPUs:      {total}")
    run.screen.line(f"  Allocated GPUs:  {node['gpus']['requested']}")
    if reclaimable := _reclaimable(node):
        run.screen.line(f"  Reclaimable GPUs: {reclaimable}, of best-effort pods")


def _print_use(run: Session, cluster: str, name: str) -> None:
    """What each GPU does, where that is measured."""
    measured = gpu_use.read(run.api, at("gpu-usage", "clusters", cluster), "nodes")
    gpus = [gpu for node in measured if node["node"] == name for gpu in node["gpus"]]
    if not gpus:
        return
    headers = ["GPU", "UTIL", "MEMORY(Used/Total)", "POWER", "TEMPERATURE", "NAMESPACE", "POD"]
    rows = [[gpu["gpu"], *gpu_use.cells(gpu), gpu["namespace"] or human.NONE, gpu["pod"] or human.NONE] for gpu in gpus]
    run.screen.line()
    run.screen.line("Use:")
    run.screen.table(headers, rows, indent=2)


def _pod(pod: Item) -> list[str]:
    """A pod of a namespace that the caller may not read has no names."""
    return [pod["namespace"] or human.NONE, pod["name"] or human.NONE, pod["role"], str(pod["index"]), str(pod["gpus"])]


def _print_links(run: Session, devices: Item) -> None:
    run.screen.line()
    if not devices["topology"]:
        run.screen.line(
            "Its GPUs are not allocated by their links: label the node ack.node.gpu.schedule=topology to enable that."
        )
        return
    _matrix(run, "LinkTypeMatrix:", devices["links"])
    _matrix(run, "BandwidthMatrix:", devices["bandwidth"])
    run.screen.line("GPUs:")
    run.screen.table(["INDEX", "STATUS", "HEALTHY", "POD"], map(_gpu, devices["gpus"]), indent=2)


def _matrix(run: Session, title: str, rows: Sequence[Sequence[object]]) -> None:
    run.screen.line(title)
    headers = ["", *(f"GPU{i}" for i in range(len(rows)))]
    run.screen.table(headers, [[f"GPU{i}", *map(str, row)] for i, row in enumerate(rows)], indent=2)


def _gpu(gpu: Item) -> Sequence[str]:
    pod = f"{gpu['namespace']}/{gpu['pod']}" if gpu["pod"] else human.NONE
    status = "using" if gpu["taken"] else "idle"
    return [f"GPU{gpu['index']}", status, str(gpu["healthy"]).lower(), pod]
