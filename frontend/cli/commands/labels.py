"""``convoy label node``: labels of a member's node, by kubectl's command line."""

from typing import Annotated

import typer

from frontend.cli import session
from frontend.cli.client import at
from frontend.cli.problems import missing, usage


def label(
    context: typer.Context,
    what: Annotated[
        str, typer.Argument(metavar="node", help="Nodes are labelled; clusters with kubectl label cluster.")
    ],
    name: Annotated[str, typer.Argument(help="The node.")],
    labels: Annotated[list[str], typer.Argument(metavar="KEY=VALUE|KEY-...", help="Labels to set; KEY- removes one.")],
    cluster: Annotated[str, typer.Option(help="The node's cluster, where several have one of that name.")] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Change labels that have another value.")] = False,
) -> None:
    """Set or remove labels of a node of a cluster."""
    if what not in ("node", "nodes", "no"):
        raise usage(f"cannot label a {what}", "for example: convoy label node gpu-0 ack.node.gpu.schedule=topology")
    run = session.session_of(context)
    wanted = dict(_label(text) for text in labels)
    clusters = [node["cluster"] for node in run.api.list("nodes/", {"cluster": cluster}) if node["name"] == name]
    clusters = [each for each in clusters if cluster in ("", each)]
    if not clusters:
        raise missing(f"there is no node {name}" + (f" in cluster {cluster}" if cluster else ""))
    if len(clusters) > 1:
        raise usage(f"{name} is in {', '.join(clusters)}", "say which with --cluster")
    run.api.patch(at("clusters", clusters[0], "nodes", name), {"labels": wanted, "overwrite": overwrite})
    run.screen.line(f"node/{name} labeled")


def _label(text: str) -> tuple[str, str | None]:
    key, sign, value = text.partition("=")
    if key and sign:
        return key, value
    if key.endswith("-") and len(key) > 1:
        return key[:-1], None
    raise usage(
        f"{text!r} is not a label",
        "for example: ack.node.gpu.schedule=topology, or ack.node.gpu.schedule- to remove it",
    )
