"""``convoy cluster ...`` and ``convoy top``: members join, leave, are closed for new work and drained; what they have left."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from frontend.cli import human, session
from frontend.cli.client import Item, at
from frontend.cli.commands import get, nodes, whatif
from frontend.cli.output import bar
from frontend.cli.problems import Exit, Problem, usage

app = typer.Typer(no_args_is_help=True, help="Member clusters: join, renew, list, cordon, drain, uncordon, detach.")
Name = Annotated[str, typer.Argument(help="The cluster's name in the fleet.")]


@app.command()
def join(
    context: typer.Context,
    name: Name,
    kubeconfig: Annotated[str, typer.Option(metavar="FILE|-", help="How to reach it; - is stdin.")],
    kube_context: Annotated[str, typer.Option("--context", help="Which context of the file.")] = "",
    label: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Repeatable.")] = None,
) -> None:
    """Take a cluster into the fleet. Its credentials are kept encrypted on the server."""
    run = session.session_of(context)
    body = {"name": name, "kubeconfig": _text(kubeconfig), "context": kube_context, "labels": _labels(label or [])}
    item = run.api.post("clusters/", body)
    run.screen.line(f"cluster/{item['name']} joined ({item['state']}, {item.get('version') or 'version unknown'})")
    for each in item.get("permissions") or []:
        if not each.get("allowed"):
            warning = f"warning: may not {each['verb']} {each['resource']}, needed for {each.get('needed_for', '')}"
            run.screen.note(warning, "yellow")


@app.command()
def renew(
    context: typer.Context,
    name: Name,
    kubeconfig: Annotated[str, typer.Option(metavar="FILE|-", help="The new one, of the same cluster; - is stdin.")],
    kube_context: Annotated[str, typer.Option("--context", help="Which context of the file.")] = "",
) -> None:
    """Give the fleet new credentials for a cluster, without detaching it; its jobs run on."""
    run = session.session_of(context)
    run.api.put(at("clusters", name, "credentials"), {"kubeconfig": _text(kubeconfig), "context": kube_context})
    run.screen.line(f"cluster/{name} has new credentials")


@app.command("list")
def listing(context: typer.Context, output: get.How = get.Output.TABLE, watch: get.Watch = False) -> None:
    """List the member clusters."""
    get.get(context, "clusters", output=output, watch=watch)


@app.command()
def cordon(context: typer.Context, name: Name) -> None:
    """Place nothing new on a cluster; what runs there stays."""
    run = session.session_of(context)
    run.api.post(at("clusters", name, "cordon"))
    run.screen.line(f"cluster/{name} cordoned")


@app.command()
def drain(
    context: typer.Context,
    name: Name,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show which jobs would have to move.")] = False,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask first.")] = False,
) -> None:
    """Move the jobs of a cluster elsewhere and place nothing new on it, until it is uncordoned."""
    run = session.session_of(context)
    whatif.print_differences(run, run.api.post("whatif/", {"lose_cluster": name}))
    if dry_run:
        run.screen.line(f"cluster/{name} would be drained (dry run)")
        return
    if not yes and sys.stdin.isatty() and not typer.confirm(f"Drain {name}?", err=True):
        raise Problem(f"{name} was not drained")
    run.api.post(at("clusters", name, "drain"))
    run.screen.line(f"cluster/{name} drained")
    run.screen.note(
        "a job leaves when its policy tolerates the drain no longer: `convoy get jobs -A -w` shows them move"
    )
    run.screen.note(f"`convoy cluster uncordon {name}` opens the cluster again")


@app.command()
def uncordon(context: typer.Context, name: Name) -> None:
    """Place jobs on a cluster again: ends its cordon and its drain. What has moved away stays where it is."""
    run = session.session_of(context)
    run.api.post(at("clusters", name, "uncordon"))
    run.screen.line(f"cluster/{name} uncordoned")


@app.command()
def detach(
    context: typer.Context,
    name: Name,
    force: Annotated[bool, typer.Option("--force", help="Even while jobs are on it.")] = False,
) -> None:
    """Take a cluster out of the fleet."""
    run = session.session_of(context)
    run.api.delete(at("clusters", name), {"force": "true"} if force else None)
    run.screen.line(f"cluster/{name} detached")


def top(
    context: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="[node NAME]", help="One node in place of all.")] = None,
    resource: Annotated[str, typer.Option(help="Which resource to show.")] = human.GPU,
    cluster: Annotated[str, typer.Option(help="Where the node is; all clusters are asked without it.")] = "",
    details: Annotated[bool, typer.Option("-d", "--details", help="Of a node: how its GPUs are linked.")] = False,
) -> None:
    """Show how full the clusters are: used, held for gangs on their way, free. Or one node, with its GPUs."""
    run = session.session_of(context)
    if words:
        nodes.top(run, words, cluster, details=details)
        return
    items = run.api.list("clusters/")
    if not items:
        run.screen.note("No clusters found.")
        return
    rows = [_usage(item["name"], item["state"], _amounts(item, resource), resource) for item in items]
    if len(items) > 1:
        total = {key: sum(_amounts(item, resource)[key] for item in items) for key in _amounts(items[0], resource)}
        rows.append(_usage("fleet", "", total, resource))
    what = "GPUS" if resource == human.GPU else resource.upper()
    run.screen.table(["CLUSTER", "STATE", what, "USED", "HELD", "FREE", "TOTAL"], rows)


def _amounts(item: Item, resource: str) -> dict[str, int]:
    found = (item.get("capacity") or {}).get(resource) or {}
    return {key: found.get(key, 0) for key in ("requested", "held", "free", "allocatable")}


def _usage(name: str, state: str, amounts: dict[str, int], resource: str) -> list[str]:
    drawn = bar(amounts["requested"], amounts["held"], amounts["allocatable"])
    return [name, state, drawn, *(human.amount(resource, value) for value in amounts.values())]


def _text(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).expanduser().read_text()
    except OSError as e:
        code = Exit.NOT_FOUND if isinstance(e, FileNotFoundError) else Exit.ERROR
        raise Problem(f"cannot read {path}: {e.strerror}", exit_code=code) from e
    except UnicodeDecodeError as e:
        raise Problem(f"{path} is not UTF-8 text", hint="is it a kubeconfig?") from e


def _labels(labels: list[str]) -> dict[str, str]:
    pairs = [each.partition("=") for each in labels]
    for key, sign, _ in pairs:
        if not key or not sign:
            raise usage(f"{key or '='!r} is not a label", "for example: --label team=vision")
    return {key: value for key, _, value in pairs}
