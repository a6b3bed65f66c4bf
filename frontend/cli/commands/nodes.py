"""``convoy top node``: one node of a member with its GPUs: its pods, its links, and which pod has which GPU."""

from collections.abc import Sequence

from frontend.cli import human
from frontend.cli.client import Item, at
from frontend.cli.problems import Exit, Problem, usage
from frontend.cli.session import Session


def top(run: Session, words: Sequence[str], cluster: str, *, details: bool) -> None:
    if words[0] not in ("node", "nodes", "no") or len(words) != 2:
        raise usage(f"{' '.join(words)!r} is nothing to show", "for example: convoy top node gpu-0 -d")
    node = words[1]
    where, found = _find(run, node, cluster)
    run.screen.line(f"Name:    {node}")
    run.screen.line(f"Cluster: {where}")
    run.screen.line(f"Status:  {'Ready' if found['ready'] else 'NotReady'}")
    run.screen.line(f"GPUs:    {found['requested']}/{found['gpus']} requested {found['model']}".rstrip())
    if not details:
        return
    devices = run.api.get(at("gpus", where, node))
    if not devices["topology"]:
        run.screen.line(
            "It hands out its GPUs plainly: label it ack.node.gpu.schedule=topology to have them by their links."
        )
        return
    _matrix(run, "LinkTypeMatrix:", devices["links"])
    _matrix(run, "BandwidthMatrix:", devices["bandwidth"])
    run.screen.line("GPUs:")
    run.screen.table(["INDEX", "STATUS", "HEALTHY", "POD"], map(_gpu, devices["gpus"]), indent=2)


def _find(run: Session, node: str, cluster: str) -> tuple[str, Item]:
    names = [cluster] if cluster else [item["name"] for item in run.api.list("clusters/")]
    hits = [(name, each) for name in names for each in run.api.get(at("gpus", name))["nodes"] if each["name"] == node]
    if not hits:
        raise Problem(f"no node {node} with GPUs is known", exit_code=Exit.NOT_FOUND)
    if len(hits) > 1:
        raise usage(f"{node} is in {', '.join(name for name, _ in hits)}", "say which with --cluster")
    return hits[0]


def _matrix(run: Session, title: str, rows: Sequence[Sequence[object]]) -> None:
    run.screen.line(title)
    heads = ["", *(f"GPU{i}" for i in range(len(rows)))]
    run.screen.table(heads, [[f"GPU{i}", *map(str, row)] for i, row in enumerate(rows)], indent=2)


def _gpu(gpu: Item) -> Sequence[str]:
    pod = f"{gpu['namespace']}/{gpu['pod']}" if gpu["pod"] else human.NONE
    status = "using" if gpu["taken"] else "idle"
    return [f"GPU{gpu['index']}", status, str(gpu["healthy"]).lower(), pod]
