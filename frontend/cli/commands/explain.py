"""``convoy explain``: shows why a job waits or why it was placed, for each cluster, and which changes would let it start."""

from collections.abc import Sequence
from typing import Annotated

import typer

from frontend.cli import human, session
from frontend.cli.client import Item
from frontend.cli.commands import simulate
from frontend.cli.commands.jobs import Words, job_of
from frontend.cli.problems import usage
from frontend.cli.session import DEFAULT_NAMESPACE, Session

NEAREST_SHOWN = 5


def explain(
    context: typer.Context,
    words: Words,
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    output: Annotated[str, typer.Option("-o", "--output", help="table, json or yaml.")] = "table",
) -> None:
    """Show why a job waits, or why its cluster was chosen, with a verdict for every cluster."""
    run = session.session_of(context)
    if output not in ("table", "json", "yaml"):
        raise usage(f"there is no output {output!r}", "one of: table, json, yaml")
    explanation = run.api.get(session.job_path(job_of(run, words, namespace), "explain"))
    if output == "json":
        run.screen.json(explanation)
    elif output == "yaml":
        run.screen.yaml(explanation)
    else:
        _print(run, explanation)


def _print(run: Session, explanation: Item) -> None:
    where = f" on {explanation['cluster']}" if explanation["cluster"] else ""
    name = f"{explanation['kind'].lower()}/{explanation['name']}"
    # The message of a running job may only repeat the cluster.
    why = "" if explanation["message"] == f"it runs{where}" else f": {explanation['message']}"
    run.screen.line(f"{name} is {explanation['state']}{where}{why}")
    if explanation["never_fits"]:
        run.screen.line("It does not fit on any cluster of the fleet, even if they were empty.", style="bold red")
    if quota := explanation["quota"]:
        run.screen.line(f"Quota: {quota['code']}: {quota['message']}")
    if explanation["clusters"]:
        run.screen.line(_heading(run, explanation))
        run.screen.table(["NAME", "VERDICT", "CAUSE", "SCORE", "WHY"], map(_row, explanation["clusters"]), indent=2)
    if speed := explanation.get("speed"):
        run.screen.line(f"Predicted speed: {simulate.described(speed)}")
    _held(run, explanation["clusters"])
    if explanation["changes"]:
        run.screen.line("It would start if you:")
        for change in explanation["changes"][:NEAREST_SHOWN]:
            run.screen.line(f"  {change['message']}")


def _heading(run: Session, explanation: Item) -> str:
    """The scores of a placed job are those at the time of placement. Later prices and free nodes do not change them."""
    if explanation["outcome"] != "Placed":
        return "Clusters:"
    since = human.age(explanation["at"], run.now())
    return f"Clusters, as attempt {explanation['attempt']} was placed {since} ago:"


def _row(each: Item) -> Sequence[str]:
    parts = ", ".join(f"{name} {value:.2f}" for name, value in each["score_parts"].items())
    why = f"{each['message']} ({parts})" if parts else each["message"]
    verdict = "Chosen" if each["chosen"] else each["code"]
    cause = human.NONE if each["cause"] == "None" else each["cause"]
    return [each["cluster"], verdict, cause, f"{each['score']:.3f}" if each["fits"] else human.NONE, why]


def _held(run: Session, clusters: Sequence[Item]) -> None:
    rows = [
        [each["cluster"], claim["job"], human.amounts(claim["amounts"]), claim["ends"]]
        for each in clusters
        for claim in each["holds"]
    ]
    if rows:
        run.screen.line("Held for others:")
        run.screen.table(["CLUSTER", "JOB", "AMOUNTS", "ENDS"], rows, indent=2)
