"""``convoy whatif``: shows what the next scheduling cycle would do under given changes. Nothing is changed."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from frontend.cli import human, session
from frontend.cli.client import Item
from frontend.cli.commands.apply import read
from frontend.cli.problems import usage
from frontend.cli.session import Session


def whatif(  # noqa: PLR0913 - each is an option of the command
    context: typer.Context,
    add_job: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="If these manifests were submitted; - reads standard input."),
    ] = None,
    lose_cluster: Annotated[str, typer.Option(metavar="CLUSTER", help="If this cluster were lost.")] = "",
    drain_cluster: Annotated[str, typer.Option(metavar="CLUSTER", help="If this cluster were drained.")] = "",
    drain_node: Annotated[
        str, typer.Option(metavar="CLUSTER/NODE", help="If this node were drained: all jobs with pods there leave it.")
    ] = "",
    add_nodes: Annotated[
        str, typer.Option(metavar="CLUSTER=COUNT", help="If the cluster had more nodes of its most common type.")
    ] = "",
    raise_quota: Annotated[
        str, typer.Option(metavar="PATH", help="If this node of the quota tree had other limits: give --max, --min.")
    ] = "",
    most: Annotated[list[str] | None, typer.Option("--max", metavar="RESOURCE=AMOUNT")] = None,
    least: Annotated[list[str] | None, typer.Option("--min", metavar="RESOURCE=AMOUNT")] = None,
    output: Annotated[str, typer.Option("-o", "--output", help="table, json or yaml.")] = "table",
) -> None:
    """Show which jobs would start, wait or move after a change of the fleet. Nothing is changed."""
    run = session.session_of(context)
    if output not in ("table", "json", "yaml"):
        raise usage(f"there is no output {output!r}", "one of: table, json, yaml")
    suppose: dict[str, Any] = {}
    if add_job:
        suppose["add_job"] = read(add_job).decode()
    if lose_cluster:
        suppose["lose_cluster"] = lose_cluster
    if drain_cluster:
        suppose["drain_cluster"] = drain_cluster
    if drain_node:
        suppose["drain_node"] = _node(drain_node)
    if add_nodes:
        suppose["add_nodes"] = _nodes(add_nodes)
    if raise_quota:
        suppose["raise_quota"] = {"path": raise_quota, "max": _amounts(most), "min": _amounts(least)}
    elif most or least:
        raise usage("--max and --min need a quota", "for example: --raise-quota root/vision")
    if not suppose:
        raise usage("give at least one change", "for example: convoy whatif --lose-cluster north")
    _show(run, run.api.post("whatif/", suppose), output)


def _show(run: Session, answer: Item, output: str) -> None:
    if output == "json":
        run.screen.json(answer)
    elif output == "yaml":
        run.screen.yaml(answer)
    else:
        print_differences(run, answer)


def print_differences(run: Session, answer: Item) -> None:
    """The jobs whose outcome would change, as a table."""
    rows = [
        [each["namespace"], each["name"], _outcome(each["before"]), _outcome(each["after"]), _why(each["after"])]
        for each in answer["differences"]
    ]
    if rows:
        run.screen.table(["NAMESPACE", "NAME", "NOW", "THEN", "WHY"], rows)
    else:
        run.screen.line("No job would be affected.")
    now = f"{answer['starts_before']} start and {answer['waits_before']} wait"
    run.screen.note(f"now {now}; then {answer['starts_after']} start and {answer['waits_after']} wait")


def _outcome(outcome: Mapping[str, Any]) -> str:
    return f"{outcome['outcome']} on {outcome['cluster']}" if outcome["cluster"] else str(outcome["outcome"])


def _why(outcome: Mapping[str, Any]) -> str:
    return (outcome["reason"] or {}).get("message") or human.NONE


def _node(text: str) -> dict[str, str]:
    cluster, _, node = text.partition("/")
    if not cluster or not node:
        raise usage(f"{text!r} is not CLUSTER/NODE", "for example: --drain-node north/north-a100-0")
    return {"cluster": cluster, "node": node}


def _nodes(text: str) -> dict[str, Any]:
    cluster, sign, count = text.partition("=")
    if not cluster or (sign and not count.isdecimal()):
        raise usage(f"{text!r} is not CLUSTER=COUNT", "for example: --add-nodes north=2")
    return {"cluster": cluster, "count": int(count) if sign else 1}


def _amounts(pairs: list[str] | None) -> dict[str, str]:
    amounts = {}
    for pair in pairs or ():
        name, sign, amount = pair.partition("=")
        if not name or not sign:
            raise usage(f"{pair!r} is not RESOURCE=AMOUNT", "for example: --max nvidia.com/gpu=16")
        amounts[name] = amount
    return amounts
